"""What is stored, when, and what a restarted head takes up."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest

from penstock.control.errors import HoldsStill, NotAdmitted, StoreUnavailable
from penstock.control.managers.cluster import Cluster
from penstock.control.managers.keeper import Keeper
from penstock.control.state.cluster import ClusterView
from penstock.control.state.fleet.replica import Evidence, NodeState, ReplicaState, Resources
from penstock.control.state.rollout.deployment import AdapterBinding, created
from penstock.control.state.routing.degrading import degrading
from penstock.control.state.routing.snapshot import routes_of
from penstock.control.state.stamp import Stamp
from penstock.control.state.tenancy.tenants import Fallbacks, TenantSpec, created_tenant
from penstock.control.store.store import Author, Change, Key
from tests.fakes.control_clock import ManualClock
from tests.fakes.control_store import MemoryStore
from tests.fakes.control_values import NOON, UID, contradict, deployment, node, replica, spec

ADMIN = Author("admin", "test")


def keeper_of(store: MemoryStore) -> Keeper:
    return Keeper(Cluster(), store, ManualClock())


def filled(view: ClusterView) -> ClusterView:
    args = (("a", "1"), ("b", "2"))
    template = replace(spec().template, max_adapters=2, max_adapter_rank=8, engine_args=args)
    deployment = created(replace(spec(replicas=2), template=template), NOON, uid=UID)
    deployment = replace(deployment, bindings=(AdapterBinding("p", "p@1", "s"),))
    view = view.with_deployment(replace(deployment, trouble="once")).with_node(node())
    return view.with_replica(replica("a")).with_replica(replica("b", ReplicaState.DRAINING))


async def test_a_restarted_head_has_the_same_routes_before_any_agent_calls() -> None:
    store = MemoryStore()
    first, second = keeper_of(store), keeper_of(store)
    before = await first.desire(filled, ADMIN)
    await second.restore()
    after = second.cluster.view()
    assert routes_of(after) == routes_of(before)
    assert after.deployments == before.deployments
    assert after.nodes[node().id].state is NodeState.EXPECTED


async def test_a_drain_that_nobody_confirmed_is_asked_for_again() -> None:
    store = MemoryStore()
    first, second = keeper_of(store), keeper_of(store)
    draining = replica(state=ReplicaState.DRAINING)
    await first.observe(lambda view: view.with_replica(draining), "test")
    await second.restore()
    restored = second.cluster.view().replicas[draining.id]
    assert restored.state is ReplicaState.DRAINING
    assert restored.status.state is not ReplicaState.DRAINING


async def test_a_replica_that_starts_has_its_whole_time_anew_under_a_restarted_head() -> None:
    store, clock = MemoryStore(), ManualClock()
    keeper = Keeper(Cluster(), store, clock)
    await keeper.observe(
        lambda view: view.with_replica(replica(state=ReplicaState.STARTING)), "test"
    )
    clock.advance(timedelta(days=1))
    cluster = Cluster()
    await Keeper(cluster, store, clock).restore()
    assert cluster.view().replicas[replica().id].since == clock.steady()


async def test_a_desire_that_cannot_be_stored_changes_nothing() -> None:
    store = MemoryStore()
    keeper = keeper_of(store)
    store.failing = True
    with pytest.raises(StoreUnavailable):
        await keeper.desire(filled, ADMIN)
    assert keeper.cluster.view() == ClusterView()


async def test_an_observation_holds_though_it_cannot_be_stored() -> None:
    store = MemoryStore()
    keeper = keeper_of(store)
    store.failing = True
    await keeper.observe(filled, "test")
    assert len(keeper.cluster.view().replicas) == 2


async def test_what_heartbeats_refresh_each_second_is_not_written() -> None:
    store = MemoryStore()
    keeper = keeper_of(store)
    await keeper.observe(filled, "test")
    version = (await store.load()).version
    facts = replace(node().facts, resources=Resources(memory_available_bytes=5))
    heard = replace(node(), facts=facts)
    pinged = replace(replica("a"), evidence=Evidence.ANSWERS)
    await keeper.observe(lambda view: view.with_node(heard).with_replica(pinged), "test")
    assert (await store.load()).version == version
    assert keeper.cluster.view().nodes[node().id] == heard


async def test_what_left_the_view_leaves_the_store() -> None:
    store = MemoryStore()
    keeper = keeper_of(store)
    await keeper.observe(filled, "test")
    await keeper.observe(lambda view: ClusterView(), "test")
    assert (await store.load()).documents == {}


def document(store: MemoryStore, kind: str, name: str) -> dict[str, object]:
    return dict(store.documents[Key(kind, name)].document)


async def test_one_document_that_cannot_be_read_is_skipped_shown_and_kept() -> None:
    store = MemoryStore()
    await keeper_of(store).desire(filled, ADMIN)
    broken = {**document(store, "replica", "a"), "state": "on fire"}
    await store.apply([Change(Key("replica", "a"), broken)], ADMIN, NOON)
    second = keeper_of(store)
    await second.restore()
    view = second.cluster.view()
    assert list(view.replicas) == ["b"]
    assert view.unreadable == ("replica 'a': ValueError: 'on fire' is not a valid ReplicaState",)
    await second.observe(lambda view: view.with_replica(replica("c")), "test")
    assert document(store, "replica", "a") == broken


async def test_a_tenant_from_before_fallbacks_is_bound_and_told_so_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    store = MemoryStore()
    leads = replace(spec(), degrading=degrading(["fallback:cloud"], "reject"))
    tenant = created_tenant("acme", TenantSpec(models=("mini",)), NOON, uid="1")
    await keeper_of(store).desire(
        lambda view: replace(
            view.with_deployment(deployment(leads)), tenancy=view.tenancy.with_tenant(tenant)
        ),
        ADMIN,
    )
    old = document(store, "tenant", "acme")
    assert old.pop("fallbacks") == "listed"
    await store.apply([Change(Key("tenant", "acme"), old)], ADMIN, NOON)
    upgraded, again = keeper_of(store), keeper_of(store)
    await upgraded.restore()
    assert upgraded.cluster.view().tenancy.tenants["acme"].spec.fallbacks is Fallbacks.LISTED
    assert "no longer mini -> cloud" in caplog.text
    caplog.clear()
    await again.restore()
    assert "mini -> cloud" not in caplog.text


async def test_a_contradicted_head_writes_nothing_more_and_a_restart_does_not_heal_it() -> None:
    store = MemoryStore()
    keeper = keeper_of(store)
    await keeper.restore()
    await keeper.desire(filled, ADMIN)
    later = replace(keeper.stamp, revision=keeper.stamp.revision + 1)
    await keeper.hear("node n1", keeper.stamp)
    assert not keeper.cluster.view().held
    await keeper.hear("node n1", later)
    assert "node n1 knows a later state" in keeper.cluster.view().held
    version = (await store.load()).version
    await keeper.observe(lambda view: view.with_replica(replica("c")), "test")
    with pytest.raises(HoldsStill, match="--take-over"):
        await keeper.desire(filled, ADMIN)
    assert (await store.load()).version == version
    restarted = keeper_of(store)
    await restarted.restore()
    assert restarted.cluster.view().held == keeper.cluster.view().held
    await restarted.hear("node n1", later)
    await restarted.take_over()
    assert (restarted.stamp.epoch, restarted.cluster.view().held) == (2, "")
    again = keeper_of(store)
    await again.restore()
    assert (again.stamp.epoch, again.cluster.view().held) == (2, "")


async def test_a_take_over_is_not_undone_by_who_stays_with_another_cluster() -> None:
    store = MemoryStore()
    keeper = keeper_of(store)
    await keeper.restore()
    stranger = Stamp("elsewhere", 7, 3)
    keeper.listen_to_all()
    await keeper.hear("node n1", keeper.stamp)
    await keeper.hear("node n2", stranger)
    assert "belongs to another cluster" in keeper.cluster.view().held
    await keeper.take_over()
    restarted = keeper_of(store)
    await restarted.restore()
    for head in (keeper, restarted):
        with pytest.raises(NotAdmitted):
            await head.hear("node n2", stranger)
        assert not head.cluster.view().held


@pytest.mark.parametrize("who", ["node n1", "node n9", "gateway g9"])
async def test_one_of_another_cluster_is_refused_and_changes_nothing(who: str) -> None:
    await _is_refused(who, lambda own: Stamp("elsewhere", 7, 3), "another cluster")


@pytest.mark.parametrize("who", ["node n9", "gateway g9"])
async def test_one_that_the_store_does_not_know_is_not_believed_that_it_knows_better(
    who: str,
) -> None:
    await _is_refused(who, lambda own: replace(own, epoch=own.epoch + 1), "taken over")
    await _is_refused(who, lambda own: replace(own, revision=2**64 - 1), "later state")


async def _is_refused(who: str, stamp: Callable[[Stamp], Stamp], why: str) -> None:
    store = MemoryStore()
    keeper = keeper_of(store)
    await keeper.restore()
    await keeper.desire(filled, ADMIN)
    before = keeper.cluster.view()
    with pytest.raises(NotAdmitted, match=why):
        await keeper.hear(who, stamp(keeper.stamp), "10.0.0.9:1")
    assert keeper.cluster.view() is before
    (refused,) = keeper.cluster.liveness.refused.items()
    assert refused[0] == f"{who} at 10.0.0.9:1"
    assert why in refused[1].why
    await keeper.desire(lambda view: view.with_replica(replica("c")), ADMIN)


async def test_what_was_seen_while_nothing_could_be_stored_is_stored_with_the_next_change() -> None:
    store = MemoryStore()
    keeper = keeper_of(store)
    await keeper.desire(filled, ADMIN)
    store.failing = True
    await keeper.observe(lambda view: view.without_replica(replica("a").id), "test")
    store.failing = False
    await keeper.observe(lambda view: view.with_replica(replica("c")), "test")
    restarted = keeper_of(store)
    await restarted.restore()
    assert sorted(restarted.cluster.view().replicas) == ["b", "c"]


async def test_a_hold_that_could_not_be_stored_is_stored_as_soon_as_it_can_be() -> None:
    store = MemoryStore()
    keeper = keeper_of(store)
    await keeper.restore()
    await keeper.desire(filled, ADMIN)
    later = replace(keeper.stamp, revision=keeper.stamp.revision + 9)
    store.failing = True
    await keeper.hear("node n1", later)
    await keeper.hear("node n1", later)
    held = keeper.cluster.view().held
    assert "knows a later state" in held
    store.failing = False
    await keeper.hear("node n2", keeper.stamp)
    restarted = keeper_of(store)
    await restarted.restore()
    assert restarted.cluster.view().held == held
    version = (await store.load()).version
    await keeper.hear("node n1", later)
    assert (await store.load()).version == version


async def test_a_take_over_that_cannot_be_stored_changes_nothing() -> None:
    store = MemoryStore()
    keeper = keeper_of(store)
    await keeper.restore()
    before = keeper.stamp
    keeper.listen_to_all()
    await keeper.hear("node n1", Stamp("elsewhere", 7, 3))
    store.failing = True
    with pytest.raises(StoreUnavailable):
        await keeper.take_over()
    assert keeper.cluster.view().held
    assert keeper.stamp.epoch == before.epoch
    store.failing = False
    await keeper.hear("node n2", Stamp("elsewhere", 7, 3))
    await keeper.take_over()
    assert not keeper.cluster.view().held


async def test_a_head_that_holds_still_decides_nothing_and_stores_nothing_that_it_has_seen() -> (
    None
):
    store = MemoryStore()
    keeper = keeper_of(store)
    await keeper.restore()
    await contradict(keeper)
    before = dict(store.documents)
    await keeper.observe(filled, "test")
    seen = await keeper.decide(lambda view: (view.with_replica(replica("c")), "test"))
    assert sorted(seen.replicas) == ["a", "b"]
    assert store.documents == before
