"""Stamps that a head hears, and what they make it do."""

from __future__ import annotations

from dataclasses import replace

import pytest

from penstock.control.state.cluster import ClusterView
from penstock.control.state.command import observed_stamp, take_over, taken_over
from penstock.control.state.fleet.serving import is_foreign
from penstock.control.state.routing.snapshot import Routes, routes_of
from penstock.control.state.routing.withholding import withheld
from penstock.control.state.stamp import Stamp, contradiction
from tests.fakes.control_values import deployment, replica

OWN = Stamp("ours", 3, 50)


@pytest.mark.parametrize(
    ("observed", "word"),
    [
        (Stamp(), ""),
        (Stamp("ours", 3, 50), ""),
        (Stamp("ours", 3, 49), ""),
        (Stamp("ours", 2, 99), ""),
        (Stamp("ours", 3, 51), "later state"),
        (Stamp("ours", 4, 1), "taken over"),
        (Stamp("theirs", 1, 1), "another cluster"),
    ],
)
def test_whoever_knows_more_than_the_store_contradicts_it(observed: Stamp, word: str) -> None:
    assert word in contradiction(OWN, observed)
    assert bool(contradiction(OWN, observed)) is bool(word)


def test_a_contradicted_head_holds_still_and_says_what_to_do() -> None:
    view = observed_stamp(ClusterView(), OWN, "node n1", Stamp("ours", 3, 51))
    assert view.held.startswith("node n1 knows a later state")
    assert view.held.endswith("once with --take-over")
    assert observed_stamp(view, OWN, "node n2", Stamp("ours", 9, 1)) is view


def test_a_take_over_is_above_all_that_was_heard_of_its_cluster() -> None:
    observed = [Stamp("ours", 3, 10), Stamp("ours", 7, 1), Stamp("theirs", 9, 1), Stamp()]
    assert take_over(ClusterView(), OWN, observed).stamp == Stamp("ours", 8, 50)


def test_an_empty_store_takes_up_the_cluster_that_most_know() -> None:
    observed = [Stamp("b", 1, 1), Stamp("a", 2, 1), Stamp("a", 2, 2)]
    taken = take_over(ClusterView(), OWN, observed).stamp
    assert taken == Stamp("a", 4, 50)
    assert all(not contradiction(taken, stamp) for stamp in observed if stamp.cluster_id == "a")


def test_a_take_over_tells_the_difference_and_ends_nothing() -> None:
    view = ClusterView(held="why").with_replica(replica("stray"))
    view = view.with_deployment(deployment(uid="u2"))
    stray, without = take_over(view, OWN, []).differences
    assert "replica stray on node n1 is of deployment 'mini'" in stray
    assert "'mini' has no replica" in without
    after = taken_over(view)
    assert after.held == ""
    assert list(after.replicas) == ["stray"]
    assert not is_foreign(after, after.replicas[replica("stray").id])


def test_routes_of_a_name_that_nobody_deleted_are_not_taken_away() -> None:
    unknown = ClusterView().with_replica(replica())
    assert "'mini', which this store does not know" in withheld(unknown, Routes(), Routes())
    again = unknown.with_deployment(deployment(uid="u2"))
    assert withheld(again, Routes(), routes_of(again))
    serving = again.with_replica(replica("new", uid="u2"))
    assert withheld(serving, Routes(), routes_of(serving)) == ""
    known = ClusterView().with_deployment(deployment()).with_replica(replica())
    told = routes_of(known)
    gone = replace(known, deployments={}, replicas={})
    assert "went without being deleted" in withheld(gone, told, routes_of(gone))
    deleted = known.without_deployment(deployment().spec.name)
    assert withheld(deleted, told, routes_of(deleted)) == ""


def test_a_head_that_holds_still_tells_no_routes() -> None:
    assert withheld(ClusterView(held="why"), Routes(), Routes()) == "why"
