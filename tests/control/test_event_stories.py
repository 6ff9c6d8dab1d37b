"""Histories as operators are told of them: what happens is told once, whatever happens to heads."""

from __future__ import annotations

from collections import Counter

from penstock.control.state.events import KeptEvent
from penstock.control.state.fleet.replica import NodeId
from tests.control.cluster_laws import serving_cluster
from tests.fakes.control_values import spec
from tests.fakes.simulated_cluster import SimulatedCluster
from tests.fakes.simulated_machines import BROKEN, FLAKY


def told(cluster: SimulatedCluster, *kinds: str) -> list[KeptEvent]:
    return [each for each in cluster.events() if not kinds or each.event.kind in kinds]


def reasons(cluster: SimulatedCluster, *kinds: str) -> list[str]:
    return [each.event.reason for each in told(cluster, *kinds)]


def test_a_rollout_that_fails_is_told_from_its_beginning_to_the_way_back() -> None:
    with serving_cluster(replicas=2) as (cluster, laws):
        before = cluster.events()[-1].id
        cluster.put(spec(replicas=2, model=BROKEN))
        laws.run(60)
        new = [each for each in told(cluster, "deployment", "rollout") if each.id > before]
        assert [(each.event.reason, each.count) for each in new] == [
            ("RevisionStarted", 1),
            ("RevisionFailed", 1),
            ("RolledBack", 1),
            ("RevisionServed", 1),
        ]
        assert "cannot load broken" in new[1].event.text
        assert "cannot load broken" in new[2].event.text
        failed = [each for each in told(cluster, "replica") if each.id > before]
        assert [each.event.reason for each in failed][:2] == ["ReplicaStarted", "ReplicaFailed"]
        assert {each.event.deployment for each in failed} == {"mini"}


def test_a_head_that_is_started_anew_tells_nothing_again() -> None:
    with serving_cluster(replicas=2) as (cluster, laws):
        before = [(each.id, each.count) for each in cluster.events()]
        assert {"NodeJoined", "GatewayConnected", "ReplicaReady"} <= set(reasons(cluster))
        for _ in range(2):
            cluster.restart_head()
            laws.run(20)
        assert [(each.id, each.count) for each in cluster.events()] == before


def test_what_repeats_is_one_event_that_counts() -> None:
    with SimulatedCluster() as cluster:
        cluster.put(spec(model=FLAKY))
        for _ in range(60):
            cluster.step()
        counts = Counter(reasons(cluster, "replica"))
        assert counts["ReplicaCrashLooping"] == counts["ReplicaEnded"] == 1
        (looping,) = [e for e in cluster.events() if e.event.reason == "ReplicaCrashLooping"]
        assert looping.count > 2
        assert looping.first_at < looping.event.at


def test_a_machine_that_goes_and_comes_back_is_told_with_what_became_of_its_replicas() -> None:
    with serving_cluster(replicas=2) as (cluster, laws):
        laws.broken()
        cluster.agents[NodeId("n0")].die(60)
        laws.run(50)
        assert reasons(cluster, "node")[-2:] == ["NodeSilent", "NodeLost"]
        lost = [e.event for e in told(cluster, "replica") if e.event.reason == "ReplicaLost"]
        assert [each.text.partition(" ")[2] for each in lost] == ["is lost: its node n0 is lost"]
        laws.run(20)
        assert reasons(cluster, "node")[-1] == "NodeBack"


def test_a_machine_that_is_away_is_told_once_whatever_happens_to_heads_meanwhile() -> None:
    with serving_cluster(replicas=2) as (cluster, _):
        cluster.agents[NodeId("n0")].die(140)
        for _ in range(3):
            cluster.restart_head()
            for _ in range(45):
                cluster.step()
        told_of = [e.event.reason for e in told(cluster, "node") if e.event.name == "n0"]
        assert told_of == ["NodeJoined", "NodeSilent", "NodeLost"]
        for _ in range(10):
            cluster.step()
        assert reasons(cluster, "node")[-1] == "NodeBack"


def test_a_node_that_is_drained_says_so_when_it_is_empty() -> None:
    with serving_cluster(replicas=2) as (cluster, _):
        cluster.drain_node(NodeId("n0"))
        cluster.settle()
        assert reasons(cluster, "node")[-2:] == ["NodeDraining", "NodeDrained"]
        drained = [e.event.text for e in told(cluster, "replica") if "drains" in e.event.text]
        assert all(text.endswith("its node n0 is drained") for text in drained)
        assert drained
