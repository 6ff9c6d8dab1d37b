"""Which replicas gateways are told of, and in what state."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.adapters.alias import Alias, Move, Target
from penstock.adapters.version import VersionState
from penstock.control.state.adapters.registry import AdapterRegistry
from penstock.control.state.cluster import ClusterView
from penstock.control.state.fleet.replica import (
    Device,
    Evidence,
    NodeState,
    Replica,
    ReplicaId,
    ReplicaState,
    Resources,
)
from penstock.control.state.rollout.deployment import Deployment, changed, created
from penstock.control.state.rollout.template import Template
from penstock.control.state.routing.degrading import degrading
from penstock.control.state.routing.limits import CanaryWeight, Limits, Sharing
from penstock.control.state.routing.snapshot import LostAccelerators, MadeRoutes, routes_of
from penstock.control.state.tenancy.prices import Prices
from penstock.control.state.tenancy.spend import Budgets, Spending
from tests.adapters.examples import version
from tests.fakes.control_values import MINI, NOON, UID, node, replica, spec


def routed(*replicas: Replica) -> dict[str, ReplicaState]:
    view = ClusterView().with_node(node()).with_deployment(created(spec(), NOON, uid=UID))
    for one in replicas:
        view = view.with_replica(one)
    return {route.id: route.state for route in routes_of(view).replicas}


@pytest.mark.parametrize("state", ReplicaState)
def test_starting_ready_and_draining_replicas_are_told_of(state: ReplicaState) -> None:
    told = state in (ReplicaState.STARTING, ReplicaState.READY, ReplicaState.DRAINING)
    assert routed(replica(state=state)) == ({"r1": state} if told else {})


def test_a_machine_is_told_of_while_its_agent_reports_a_lost_accelerator() -> None:
    def told(*, lost: bool) -> tuple[LostAccelerators, ...]:
        devices = (Device("GPU-0", "H200", lost=lost), Device("GPU-1", "H200"))
        facts = replace(node().facts, resources=Resources(devices=devices))
        view = ClusterView().with_node(replace(node(), facts=facts)).with_node(node("other"))
        return routes_of(view).lost_accelerators

    assert told(lost=True) == (LostAccelerators(str(node().id), "H200 GPU-0"),)
    assert told(lost=False) == ()


def test_a_replica_without_an_address_is_not_told_of() -> None:
    nowhere = replica(state=ReplicaState.STARTING)
    assert not routed(replace(nowhere, status=replace(nowhere.status, address="")))


def test_lost_replica_leaves_the_snapshot() -> None:
    assert routed(replica("a"), replica("b", ReplicaState.LOST)) == {"a": ReplicaState.READY}


def test_a_replica_at_whose_address_nothing_listens_leaves_the_snapshot_but_for_the_last() -> None:
    gone = replace(replica("a"), evidence=Evidence.GONE)
    assert set(routed(gone)) == {"a"}
    assert set(routed(gone, replica("b"))) == {"b"}


def test_nothing_is_routed_that_was_made_for_another_deployment_or_is_not_as_ordered() -> None:
    for state in ReplicaState:
        assert not routed(replica(state=state, uid="u2"))
        one = replica(state=state)
        assert not routed(replace(one, status=replace(one.status, template_digest="other")))
        assert not routed(replace(one, status=replace(one.status, deployment_uid="u2")))


def test_an_agent_from_before_uids_is_taken_at_its_generation() -> None:
    one = replica()
    old = replace(one.status, deployment_uid="", template_digest="")
    assert routed(replace(one, status=old))
    assert not routed(replace(one, status=replace(old, generation=9)))


def test_doubt_counts_only_where_another_replica_is_left() -> None:
    doubted = replace(replica("a"), evidence=Evidence.DOUBTED)
    assert set(routed(doubted)) == {"a"}
    assert set(routed(doubted, replica("b"))) == {"b"}


def test_a_draining_replica_stays_while_its_process_takes_no_new_connection() -> None:
    draining = replace(replica(state=ReplicaState.DRAINING), evidence=Evidence.GONE)
    assert set(routed(draining)) == {"r1"}


def test_a_silent_node_changes_no_route() -> None:
    view = ClusterView().with_replica(replica()).with_deployment(created(spec(), NOON, uid=UID))
    ready = routes_of(view.with_node(node()))
    assert ready.replicas
    assert routes_of(view.with_node(node(state=NodeState.SILENT))) == ready


TAKING = replace(spec().template, max_adapters=2)


def test_no_adapter_may_be_asked_for_while_a_replica_of_another_model_serves() -> None:
    mini = created(replace(spec(), template=TAKING), NOON, uid=UID)
    view = ClusterView().with_deployment(mini).with_replica(replica("a"))
    assert routes_of(view).deployments[0].base_family == "penstock-mini"
    other = replace(mini.spec, template=replace(TAKING, model="other"))
    view = view.with_deployment(changed(mini, other, NOON))
    assert routes_of(view).deployments[0].base_family == ""
    view = view.without_replica(ReplicaId("a"))
    view = view.with_replica(replace(replica("b"), generation=2))
    assert routes_of(view).deployments[0].base_family == "other"


def test_nothing_may_be_asked_for_of_a_deployment_without_room() -> None:
    view = ClusterView().with_deployment(created(spec(), NOON, uid=UID))
    assert routes_of(view).deployments[0].base_family == ""


def test_a_deployment_tells_its_adapters_and_the_shortest_known_context() -> None:
    pirate = version("pirate@1", family=spec().template.family)
    retired = version("pirate@0", "old", VersionState.RETIRED, spec().template.family)
    alias = Alias("mini", "sea", (Move(Target.of(pirate.ref), NOON, "alice"),))
    registry = AdapterRegistry().with_version(pirate).with_version(retired).with_alias(alias)
    view = ClusterView(adapters=registry).with_deployment(
        created(replace(spec(), template=TAKING, limits=Limits(max_ongoing=7)), NOON, uid=UID)
    )
    for name, length in (("a", 0), ("b", 512), ("c", 2048)):
        one = replica(name)
        view = view.with_replica(replace(one, status=replace(one.status, max_model_len=length)))
    routes = routes_of(view)
    (route,) = routes.deployments
    assert route.aliases == (("sea", Target.of(pirate.ref)),)
    (told,) = routes.adapters
    assert (told.name, told.digest) == ("pirate@1", pirate.manifest.digest)
    assert told.base_family == route.base_family == "penstock-mini"
    assert (route.max_model_len, route.limits.max_ongoing) == (512, 7)
    assert route.created == int(NOON.timestamp())


def test_a_deployment_serves_what_any_of_its_replicas_serves() -> None:
    view = ClusterView().with_deployment(created(spec(), NOON, uid=UID))
    for name, endpoints in (("a", ()), ("b", ("/v1/rerank", "/pooling")), ("c", ("/pooling",))):
        one = replica(name)
        view = view.with_replica(replace(one, status=replace(one.status, endpoints=endpoints)))
    (route,) = routes_of(view).deployments
    assert route.endpoints == ("/pooling", "/v1/rerank")


def test_a_canary_is_told_of_while_there_is_a_deployment_of_its_name() -> None:
    sharing = Sharing(canary=(CanaryWeight("next", 50), CanaryWeight("gone", 10)))
    view = ClusterView().with_deployment(created(replace(spec(), sharing=sharing), NOON, uid=UID))
    view = view.with_deployment(created(spec(name="next"), NOON, uid="u2"))
    mini, _ = routes_of(view).deployments
    assert mini.sharing.canary == (CanaryWeight("next", 50),)


CLOUD = Template("openai", "gpt", (("api_key_env", "KEY"), ("tools", "false")))


def test_a_deployment_tells_its_ladders_and_what_its_provider_cannot_do() -> None:
    wanted = replace(spec(), template=CLOUD, degrading=degrading({"budget": ["trim"]}, "trim"))
    view = ClusterView().with_deployment(created(wanted, NOON, uid=UID))
    (route,) = routes_of(view).deployments
    assert route.degrading == wanted.degrading
    assert (route.trims, route.managed, route.without_tools) == (True, True, True)
    (plain,) = routes_of(ClusterView().with_deployment(created(spec(), NOON, uid=UID))).deployments
    assert (plain.trims, plain.managed, plain.without_tools) == (False, False, False)
    assert (plain.budget_used_up, plain.budget_resets_at_ms) == (False, 0)


def test_a_deployment_counts_as_managed_once_no_engine_serves_it_any_more() -> None:
    engine = created(spec(), NOON, uid=UID)
    cloud = changed(engine, replace(spec(), template=CLOUD), NOON)
    view = ClusterView().with_deployment(cloud).with_replica(replica("old"))
    assert not routes_of(view).deployments[0].managed
    assert routes_of(view).deployments[0].prices == Prices()  # they are not of that engine
    view = view.with_replica(replica("new", digest=cloud.template_digest))
    assert not routes_of(view).deployments[0].managed
    view = view.with_replica(replica("old", ReplicaState.DRAINING))
    assert routes_of(view).deployments[0].managed


def test_a_budget_is_told_with_the_moment_at_which_it_begins_anew() -> None:
    midnight = int(NOON.replace(hour=0).timestamp() + 24 * 3600) * 1000
    rich = replace(spec(), budgets=Budgets(tokens_per_day=5))
    for used_up, wanted, told in (
        (frozenset(), rich, (False, midnight)),
        (frozenset({"mini"}), rich, (True, midnight)),
        (frozenset({"mini"}), spec(), (False, 0)),
    ):
        view = ClusterView(spending=Spending(NOON.date(), used_up))
        (route,) = routes_of(view.with_deployment(created(wanted, NOON, uid=UID))).deployments
        assert (route.budget_used_up, route.budget_resets_at_ms) == told


def canaried(permille: int) -> Deployment:
    sharing = Sharing(canary=(CanaryWeight("next", permille),))
    return created(replace(spec(), sharing=sharing), NOON, uid=UID)


NEXT = created(spec(name="next"), NOON, uid="u2")
STEPS: dict[str, Callable[[ClusterView], ClusterView]] = {
    **{
        f"{name} {state}": lambda view, name=name, state=state: view.with_replica(  # type: ignore[misc]
            replica(name, state)
        )
        for name in ("r1", "r2")
        for state in (ReplicaState.STARTING, ReplicaState.READY, ReplicaState.FAILED)
    },
    "r1 is gone": lambda view: view.without_replica(ReplicaId("r1")),
    "next has one": lambda view: view.with_replica(replica("n1", deployment="next", uid="u2")),
    "mini": lambda view: view.with_deployment(created(spec(), NOON, uid=UID)),
    "mini with a canary": lambda view: view.with_deployment(canaried(50)),
    "mini is made anew": lambda view: view.with_deployment(created(spec(), NOON, uid="u9")),
    "mini is gone": lambda view: view.without_deployment(MINI),
    "next": lambda view: view.with_deployment(NEXT),
    "next is gone": lambda view: view.without_deployment(NEXT.spec.name),
    "node": lambda view: view.with_node(node()),
    "no node": lambda view: view.without_node(node().id),
    "spent": lambda view: replace(view, spending=Spending(NOON.date(), frozenset({"mini"}))),
    "nothing changes": lambda view: replace(view),
}


@given(st.lists(st.sampled_from(sorted(STEPS)), max_size=12))
def test_routes_that_are_made_of_what_has_changed_are_those_of_the_whole_view(
    steps: list[str],
) -> None:
    view, made = ClusterView(), MadeRoutes()
    for step in steps:
        view = STEPS[step](view)
        assert made.of(view) == routes_of(view)


def test_what_has_not_changed_is_not_made_anew() -> None:
    made, view = MadeRoutes(), ClusterView().with_deployment(canaried(50)).with_deployment(NEXT)
    before = made.of(view)
    assert made.of(replace(view)) is before
    after = made.of(view.with_replica(replica("n1", deployment="next", uid="u2")))
    assert after.deployments[0] is before.deployments[0]
    assert after.deployments[1] != before.deployments[1]
