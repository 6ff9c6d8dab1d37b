"""What gateways are told of canaries: shares and rules, as they stand, and nothing more often."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from penstock.adapters.adapter import BaseModelFamily
from penstock.adapters.alias import Alias, Move, Target
from penstock.control.state.adapters.registry import AdapterRegistry
from penstock.control.state.canary.canary import ENDED, Canary, CanaryState
from penstock.control.state.canary.routes import CanaryRoute, CanaryShare
from penstock.control.state.cluster import ClusterView
from penstock.control.state.rollout.deployment import DeploymentName, changed
from penstock.control.state.routing.snapshot import MadeRoutes, Routes, routes_of
from tests.adapters.examples import ref, version
from tests.fakes.canary_values import CANARY_UID, canary, counted
from tests.fakes.control_values import NOON, deployment, in_service, spec

ALIAS = Alias("mini", "sea", (Move(Target.of(ref("a@1")), NOON, "alice"),))
ON_ALIAS = canary("mini:sea", "a@2", stable="a@1")


def view(*canaries: Canary) -> ClusterView:
    registry = AdapterRegistry().with_alias(ALIAS)
    for name in ("a@1", "a@2"):
        registry = registry.with_version(
            version(name, name, family=BaseModelFamily("penstock-mini"))
        )
    found = ClusterView(adapters=registry)
    for name in ("mini", "next"):
        found = found.with_deployment(in_service(deployment(spec(name=name), uid=name)))
    for each in canaries:
        found = replace(found, canaries=found.canaries.having(each))
    return found


def shares(routes: Routes) -> tuple[CanaryShare, ...]:
    return next(each.shares for each in routes.deployments if each.name == "mini")


def alias(routes: Routes) -> Target:
    (mini,) = (each for each in routes.deployments if each.name == "mini")
    return dict(mini.aliases)["sea"]


def test_a_deployment_shares_once_its_step_does() -> None:
    assert (shares(routes_of(view(canary()))), routes_of(view(canary())).canaries) == ((), ())
    routes = routes_of(view(canary(weighted=True)))
    assert shares(routes) == (CanaryShare("next", 100),)
    (rule,) = routes.canaries
    assert rule == CanaryRoute(CANARY_UID, "try", 1, "mini", "", "next", "", "", "", 100, 20)


def test_the_step_before_goes_on_until_the_next_one_may() -> None:
    routes = routes_of(view(canary(step=2)))
    assert shares(routes) == (CanaryShare("next", 100),)
    assert [(rule.step, rule.permille) for rule in routes.canaries] == [(1, 100)]


@pytest.mark.parametrize(
    ("way", "named"),
    [
        ({}, {"a@1": 1}),
        ({"weighted": True}, {"a@1": 9, "a@2": 1}),
        ({"weighted": True, "step": 2}, {"a@2": 1}),
    ],
)
def test_an_alias_is_shared_out_and_has_not_moved(
    way: dict[str, Any], named: Mapping[str, int]
) -> None:
    on = view(replace(ON_ALIAS, **way))
    expected = Target.split({ref(name): weight for name, weight in named.items()})
    assert alias(routes_of(on)) == expected
    assert on.adapters.alias("mini", "sea").moves == ALIAS.moves
    assert not shares(routes_of(on))


def test_a_rule_of_an_alias_names_both_versions() -> None:
    (rule,) = routes_of(view(replace(ON_ALIAS, weighted=True))).canaries
    assert (rule.deployment, rule.alias, rule.candidate) == ("mini", "sea", "")
    assert (rule.stable_adapter, rule.candidate_adapter) == ("a@1", "a@2")


def revised(**said: Any) -> ClusterView:
    """With a new revision of mini, which is the candidate."""
    found = view()
    mini = found.deployments[DeploymentName("mini")]
    now = changed(mini, spec(model="b"), NOON)
    judged = canary(
        candidate="revision 2", candidate_digest=now.template_digest, revision=2, **said
    )
    found = found.with_deployment(now)
    return replace(found, canaries=found.canaries.having(judged))


def test_everybody_is_kept_off_a_revision_that_has_no_share_yet() -> None:
    routes = routes_of(revised())
    ((share),) = shares(routes)
    assert (share.deployment, share.permille) == ("mini", 0)
    assert share.template_digest
    assert not routes.canaries


def test_a_revision_that_is_rolled_out_to_the_end_takes_its_part_unless_it_has_all() -> None:
    assert shares(routes_of(revised(weighted=True)))[0].permille == 100
    assert not shares(routes_of(revised(weighted=True, promoting=True)))
    whole = shares(routes_of(revised(weighted=True, promoting=True, step=2)))
    assert whole[0].permille == 1000


@pytest.mark.parametrize("state", [*sorted(ENDED), CanaryState.WAITING])
def test_one_that_has_ended_leaves_no_trace(state: CanaryState) -> None:
    for each in (canary(), ON_ALIAS):
        over = replace(each, weighted=True, state=state)
        assert routes_of(view(over)) == routes_of(view())


def test_no_share_goes_to_what_is_there_no_more() -> None:
    on = view(canary(weighted=True)).without_deployment(DeploymentName("next"))
    assert (shares(routes_of(on)), routes_of(on).canaries) == ((), ())


def test_what_is_counted_and_missing_makes_no_routes_anew() -> None:
    made, on = MadeRoutes(), view(canary(weighted=True))
    before = made.of(on)
    held = replace(on.canaries.named["try"], state=CanaryState.HELD, why="3 of 10", routed_at=NOON)
    canaries = on.canaries.having_counted(counted()).having(held)
    assert made.of(replace(on, canaries=canaries)) is before
    next_step = replace(on, canaries=canaries.having(replace(held, step=2, weighted=True)))
    assert made.of(next_step) is not before


def test_routes_that_are_withheld_still_take_the_share_of_what_was_rolled_back() -> None:
    for told in (canary(weighted=True), replace(ON_ALIAS, weighted=True)):
        shared, now = routes_of(view(told)), routes_of(view())
        kept = shared.with_rules_of(now)
        assert shared.canaries
        assert not kept.canaries
        assert (shares(kept), alias(kept)) == ((), Target.of(ref("a@1")))
