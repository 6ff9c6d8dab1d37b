"""The view is never changed, only replaced."""

from __future__ import annotations

import pytest

from penstock.control.errors import Code
from penstock.control.state.cluster import ClusterView, some_of
from penstock.control.state.rollout.deployment import created
from tests.fakes.control_errors import raises_code
from tests.fakes.control_values import MINI, NOON, UID, replica, spec


def test_a_change_leaves_the_former_view_as_it_was() -> None:
    before = ClusterView().with_replica(replica("a"))
    after = before.with_replica(replica("b"))
    assert (len(before.replicas), len(after.replicas)) == (1, 2)


def test_a_deleted_deployment_is_remembered_with_all_that_was_made_for_its_name() -> None:
    view = ClusterView().with_deployment(created(spec(), NOON, uid=UID))
    view = view.with_replica(replica("stray", uid="u0")).without_deployment(MINI)
    assert {uid: d.collected for uid, d in view.departed.items()} == {UID: True, "u0": True}


def test_an_unknown_deployment_is_answered_with_those_that_exist() -> None:
    view = ClusterView().with_deployment(created(spec(), NOON, uid=UID))
    assert view.deployment("mini").spec.name == MINI
    with raises_code(Code.UNKNOWN_DEPLOYMENT, match="no deployment 'mimi': there are mini"):
        view.deployment("mimi")


@pytest.mark.parametrize(
    ("count", "told"),
    [(0, "none"), (2, "m0, m1"), (5, "m0, m1, m2, m3, m4"), (8, "m0, m1, m2, m3, m4 and 3 more")],
)
def test_an_error_names_a_few_of_all_that_there_are(count: int, told: str) -> None:
    assert some_of({f"m{n}" for n in range(count)}) == told
