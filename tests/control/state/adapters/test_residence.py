"""What replicas are to keep follows from the aliases of their deployment."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from penstock.adapters.alias import Alias, Move, Target
from penstock.adapters.version import VersionState
from penstock.control.state.adapters.registry import AdapterRegistry
from penstock.control.state.adapters.residence import KeepOrder, orders_of, residence_of
from penstock.control.state.canary.canary import CanaryState, ended
from penstock.control.state.cluster import ClusterView
from penstock.control.state.fleet.replica import FailedAdapter, ReplicaId, ReplicaState
from penstock.control.state.rollout.deployment import created
from tests.adapters.examples import ref, version
from tests.fakes.canary_values import canary
from tests.fakes.control_values import NOON, UID, node, replica, spec

TEMPLATE = replace(spec().template, max_adapters=2)
MINI = created(replace(spec(replicas=2), template=TEMPLATE), NOON, uid=UID)
REGISTRY = AdapterRegistry()
for _name in ("a@1", "b@1", "c@1"):
    REGISTRY = REGISTRY.with_version(version(_name, _name, family=TEMPLATE.family))


def alias(name: str, target: str, **more: Any) -> Alias:
    weights = {ref(each): 1 for each in target.split()}
    return Alias("mini", name, (Move(Target.split(weights), NOON, "alice"),), **more)


def view(*aliases: Alias, registry: AdapterRegistry = REGISTRY) -> ClusterView:
    for each in aliases:
        registry = registry.with_alias(each)
    found = ClusterView(adapters=registry).with_deployment(MINI).with_node(node())
    return found.with_replica(replica("r1")).with_replica(replica("r2"))


def telling(found: ClusterView, name: str, **status: Any) -> ClusterView:
    one = found.replicas[ReplicaId(name)]
    return found.with_replica(replace(one, status=replace(one.status, **status)))


def kept(found: ClusterView) -> dict[str, list[str]]:
    orders = orders_of(found, {})
    return {name: [each.name for each in order.kept] for name, order in orders.items()}


def test_what_an_alias_names_is_kept_by_all_with_its_digest() -> None:
    found = view(alias("sea", "a@1", pinned=True))
    assert kept(found) == {"r1": ["a@1"], "r2": ["a@1"]}
    (one,) = orders_of(found, {})[ReplicaId("r1")].kept
    assert (one.digest, one.pinned) == (REGISTRY.version("a@1").manifest.digest, True)


def test_both_halves_of_a_split_are_kept() -> None:
    assert kept(view(alias("sea", "a@1 b@1"))) == {"r1": ["a@1", "b@1"], "r2": ["a@1", "b@1"]}


def test_an_alias_may_be_on_fewer_or_none_before_it_is_asked_for() -> None:
    assert kept(view(alias("sea", "a@1", preload=1))) == {"r1": ["a@1"], "r2": []}
    assert kept(view(alias("sea", "a@1", preload=0))) == {"r1": [], "r2": []}


def test_what_finds_no_slot_is_told() -> None:
    found = view(alias("x", "a@1"), alias("y", "b@1"), alias("z", "c@1"))
    assert residence_of(found, MINI, {}).unplaced == {ref("c@1"): 2}


def test_a_load_that_failed_on_one_replica_is_tried_on_another() -> None:
    found = telling(
        view(alias("sea", "a@1", preload=1)),
        "r1",
        failed_adapters=(FailedAdapter("a@1", "d", "disk full"),),
    )
    assert kept(found) == {"r1": [], "r2": ["a@1"]}


def test_what_was_told_is_on_its_way_and_is_not_told_to_others() -> None:
    found = view(alias("sea", "a@1", preload=1))
    second = orders_of(found, {})[ReplicaId("r1")]
    told = {ReplicaId("r2"): second}
    assert [len(o.kept) for _, o in sorted(orders_of(found, told).items())] == [0, 1]


def test_what_was_removed_or_retired_is_let_go() -> None:
    retired = version("c@1", "c@1", VersionState.RETIRED, TEMPLATE.family)
    registry = REGISTRY.without_version(ref("b@1")).with_version(retired)
    found = telling(view(registry=registry), "r1", adapters=("a@1", "b@1", "c@1", "no name"))
    assert orders_of(found, {}) == {
        "r1": KeepOrder(dropped=("b@1", "c@1", "no name")),
        "r2": KeepOrder(),
    }


def test_replicas_of_which_nothing_is_wanted_are_left_alone() -> None:
    assert orders_of(view(), {}) == {}


def test_a_replica_that_no_agent_knows_yet_is_ordered_with_its_adapters_and_not_told() -> None:
    found = view(alias("sea", "a@1")).with_replica(replica("r1", ReplicaState.PENDING))
    assert list(orders_of(found, {})) == ["r2"]
    assert [k.name for k in residence_of(found, MINI, {}).orders[ReplicaId("r1")].kept] == ["a@1"]


def test_a_canarys_candidate_is_kept_beside_what_its_alias_names_until_it_has_ended() -> None:
    found = view(alias("sea", "a@1", preload=1))
    on = canary("mini:sea", "b@1", stable="a@1")
    shared = replace(found, canaries=found.canaries.having(on))
    assert kept(shared) == {"r1": ["a@1"], "r2": ["b@1"]}
    over = ended(on, CanaryState.ROLLED_BACK, "worse", NOON)
    assert kept(replace(shared, canaries=shared.canaries.having(over))) == kept(found)
