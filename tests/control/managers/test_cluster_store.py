"""What is stored, when, and what a restarted head takes up."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest

from penstock.control.errors import HoldsStill, NotAdmitted, StoreUnavailable
from penstock.control.managers.cluster_store import ClusterStore
from penstock.control.state.cluster import ClusterView
from penstock.control.state.fleet.replica import Evidence, NodeState, ReplicaState, Resources
from penstock.control.state.rollout.deployment import created
from penstock.control.state.routing.snapshot import routes_of
from penstock.control.state.stamp import Stamp
from penstock.control.store.store import IDENTITY, Author, Change, Key
from tests.fakes.control_clock import ManualClock
from tests.fakes.control_store import MemoryStore
from tests.fakes.control_values import NOON, UID, contradict, node, replica, spec

ADMIN = Author("admin", "test")


def cluster_of(store: MemoryStore) -> ClusterStore:
    return ClusterStore(store, ManualClock())


def filled(view: ClusterView) -> ClusterView:
    args = (("a", "1"), ("b", "2"))
    template = replace(spec().template, max_adapters=2, max_adapter_rank=8, engine_args=args)
    deployment = created(replace(spec(replicas=2), template=template), NOON, uid=UID)
    view = view.with_deployment(replace(deployment, trouble="once")).with_node(node())
    return view.with_replica(replica("a")).with_replica(replica("b", ReplicaState.DRAINING))


async def test_a_restarted_head_has_the_same_routes_before_any_agent_calls() -> None:
    store = MemoryStore()
    first, second = cluster_of(store), cluster_of(store)
    before = await first.apply(filled, ADMIN)
    await second.restore()
    after = second.view()
    assert routes_of(after) == routes_of(before)
    assert after.deployments == before.deployments
    assert after.nodes[node().id].state is NodeState.EXPECTED


async def test_a_drain_that_nobody_confirmed_is_asked_for_again() -> None:
    store = MemoryStore()
    first, second = cluster_of(store), cluster_of(store)
    draining = replica(state=ReplicaState.DRAINING)
    await first.observe(lambda view: view.with_replica(draining), "test")
    await second.restore()
    restored = second.view().replicas[draining.id]
    assert restored.state is ReplicaState.DRAINING
    assert restored.status.state is not ReplicaState.DRAINING


async def test_a_replica_that_starts_has_its_whole_time_anew_under_a_restarted_head() -> None:
    store, clock = MemoryStore(), ManualClock()
    cluster = ClusterStore(store, clock)
    await cluster.observe(
        lambda view: view.with_replica(replica(state=ReplicaState.STARTING)), "test"
    )
    clock.advance(timedelta(days=1))
    cluster = ClusterStore(store, clock)
    await cluster.restore()
    assert cluster.view().replicas[replica().id].since == clock.steady()


async def test_a_desire_that_cannot_be_stored_changes_nothing() -> None:
    store = MemoryStore()
    cluster = cluster_of(store)
    store.failing = True
    with pytest.raises(StoreUnavailable):
        await cluster.apply(filled, ADMIN)
    assert cluster.view() == ClusterView()


async def test_an_observation_holds_though_it_cannot_be_stored() -> None:
    store = MemoryStore()
    cluster = cluster_of(store)
    store.failing = True
    await cluster.observe(filled, "test")
    assert len(cluster.view().replicas) == 2


async def test_what_heartbeats_refresh_each_second_is_not_written() -> None:
    store = MemoryStore()
    cluster = cluster_of(store)
    await cluster.observe(filled, "test")
    version = (await store.load()).version
    facts = replace(node().facts, resources=Resources(memory_available_bytes=5))
    observed = replace(node(), facts=facts)
    pinged = replace(replica("a"), evidence=Evidence.ANSWERS)
    await cluster.observe(lambda view: view.with_node(observed).with_replica(pinged), "test")
    assert (await store.load()).version == version
    assert cluster.view().nodes[node().id] == observed


async def test_what_left_the_view_leaves_the_store() -> None:
    store = MemoryStore()
    cluster = cluster_of(store)
    await cluster.observe(filled, "test")
    await cluster.observe(lambda view: ClusterView(), "test")
    assert (await store.load()).documents == {}


def document(store: MemoryStore, kind: str, name: str) -> dict[str, object]:
    return dict(store.documents[Key(kind, name)].document)


async def test_one_document_that_cannot_be_read_is_skipped_shown_and_kept() -> None:
    store = MemoryStore()
    await cluster_of(store).apply(filled, ADMIN)
    broken = {**document(store, "replica", "a"), "state": "on fire"}
    await store.apply([Change(Key("replica", "a"), broken)], ADMIN, NOON)
    second = cluster_of(store)
    await second.restore()
    view = second.view()
    assert list(view.replicas) == ["b"]
    assert view.unreadable == ("replica 'a': ValueError: 'on fire' is not a valid ReplicaState",)
    await second.observe(lambda view: view.with_replica(replica("c")), "test")
    assert document(store, "replica", "a") == broken


async def test_a_contradicted_head_writes_nothing_more_and_a_restart_does_not_heal_it() -> None:
    store = MemoryStore()
    cluster = cluster_of(store)
    await cluster.restore()
    await cluster.apply(filled, ADMIN)
    later = replace(cluster.stamp, revision=cluster.stamp.revision + 1)
    await cluster.observe_stamp("node n1", cluster.stamp)
    assert not cluster.view().held
    await cluster.observe_stamp("node n1", later)
    assert "node n1 knows a later state" in cluster.view().held
    version = (await store.load()).version
    await cluster.observe(lambda view: view.with_replica(replica("c")), "test")
    with pytest.raises(HoldsStill, match="--take-over"):
        await cluster.apply(filled, ADMIN)
    assert (await store.load()).version == version
    restarted = cluster_of(store)
    await restarted.restore()
    assert restarted.view().held == cluster.view().held
    await restarted.observe_stamp("node n1", later)
    await restarted.take_over()
    assert (restarted.stamp.epoch, restarted.view().held) == (2, "")
    again = cluster_of(store)
    await again.restore()
    assert (again.stamp.epoch, again.view().held) == (2, "")


async def test_a_restored_store_is_taken_over_once_whenever_its_head_ends_before() -> None:
    store = MemoryStore()
    first = cluster_of(store)
    await first.restore()
    identity = document(store, *IDENTITY)
    await store.apply([Change(IDENTITY, identity | {"restored": True})], ADMIN, NOON)
    second, third, fourth = cluster_of(store), cluster_of(store), cluster_of(store)
    await second.restore()
    assert second.takes_over
    later = Stamp(first.stamp.cluster_id, epoch=7, revision=900)
    await second.observe_stamp("node n1", later)
    assert second.view().held
    await third.restore()
    assert third.takes_over, "the one before it was killed while it listened"
    await third.observe_stamp("node n1", later)
    await third.take_over()
    assert (third.takes_over, third.view().held, third.stamp.epoch) == (False, "", 8)
    await fourth.restore()
    assert (fourth.takes_over, fourth.stamp.epoch) == (False, 8)


async def test_a_take_over_is_not_undone_by_who_stays_with_another_cluster() -> None:
    store = MemoryStore()
    cluster = cluster_of(store)
    await cluster.restore()
    stranger = Stamp("elsewhere", 7, 3)
    cluster.listen_to_all()
    await cluster.observe_stamp("node n1", cluster.stamp)
    await cluster.observe_stamp("node n2", stranger)
    assert "belongs to another cluster" in cluster.view().held
    await cluster.take_over()
    restarted = cluster_of(store)
    await restarted.restore()
    for head in (cluster, restarted):
        with pytest.raises(NotAdmitted):
            await head.observe_stamp("node n2", stranger)
        assert not head.view().held


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
    cluster = cluster_of(store)
    await cluster.restore()
    await cluster.apply(filled, ADMIN)
    before = cluster.view()
    with pytest.raises(NotAdmitted, match=why):
        await cluster.observe_stamp(who, stamp(cluster.stamp), "10.0.0.9:1")
    assert cluster.view() is before
    (refused,) = cluster.liveness.refused.items()
    assert refused[0] == f"{who} at 10.0.0.9:1"
    assert why in refused[1].why
    await cluster.apply(lambda view: view.with_replica(replica("c")), ADMIN)


async def test_what_was_seen_while_nothing_could_be_stored_is_stored_with_the_next_change() -> None:
    store = MemoryStore()
    cluster = cluster_of(store)
    await cluster.apply(filled, ADMIN)
    store.failing = True
    await cluster.observe(lambda view: view.without_replica(replica("a").id), "test")
    store.failing = False
    await cluster.observe(lambda view: view.with_replica(replica("c")), "test")
    restarted = cluster_of(store)
    await restarted.restore()
    assert sorted(restarted.view().replicas) == ["b", "c"]


async def test_a_hold_that_could_not_be_stored_is_stored_as_soon_as_it_can_be() -> None:
    store = MemoryStore()
    cluster = cluster_of(store)
    await cluster.restore()
    await cluster.apply(filled, ADMIN)
    later = replace(cluster.stamp, revision=cluster.stamp.revision + 9)
    store.failing = True
    await cluster.observe_stamp("node n1", later)
    await cluster.observe_stamp("node n1", later)
    held = cluster.view().held
    assert "knows a later state" in held
    store.failing = False
    await cluster.observe_stamp("node n2", cluster.stamp)
    restarted = cluster_of(store)
    await restarted.restore()
    assert restarted.view().held == held
    version = (await store.load()).version
    await cluster.observe_stamp("node n1", later)
    assert (await store.load()).version == version


async def test_a_take_over_that_cannot_be_stored_changes_nothing() -> None:
    store = MemoryStore()
    cluster = cluster_of(store)
    await cluster.restore()
    before = cluster.stamp
    cluster.listen_to_all()
    await cluster.observe_stamp("node n1", Stamp("elsewhere", 7, 3))
    store.failing = True
    with pytest.raises(StoreUnavailable):
        await cluster.take_over()
    assert cluster.view().held
    assert cluster.stamp.epoch == before.epoch
    store.failing = False
    await cluster.observe_stamp("node n2", Stamp("elsewhere", 7, 3))
    await cluster.take_over()
    assert not cluster.view().held


async def test_a_head_that_holds_still_decides_nothing_and_stores_nothing_that_it_has_seen() -> (
    None
):
    store = MemoryStore()
    cluster = cluster_of(store)
    await cluster.restore()
    await contradict(cluster)
    before = dict(store.documents)
    await cluster.observe(filled, "test")
    seen = await cluster.apply_plan(lambda view: (view.with_replica(replica("c")), "test"))
    assert sorted(seen.replicas) == ["a", "b"]
    assert store.documents == before
