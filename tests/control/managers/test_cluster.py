"""The view is replaced whole, and listeners hear of it once."""

from __future__ import annotations

from penstock.control.managers.cluster import Cluster
from tests.fakes.control_values import node, replica


def test_listeners_hear_of_changes_and_of_nothing_else() -> None:
    cluster = Cluster()
    observed: list[int] = []
    stop = cluster.listen(lambda: observed.append(len(cluster.view().nodes)))
    cluster.replace(cluster.view().with_node(node()))
    cluster.replace(cluster.view().with_node(node()))
    assert observed == [1]
    stop()
    cluster.replace(cluster.view().without_node(node().id))
    assert observed == [1]


def test_listeners_of_a_part_hear_of_that_part_only() -> None:
    cluster = Cluster()
    observed: list[int] = []
    cluster.listen(lambda: observed.append(1), of=lambda view: (view.replicas,))
    cluster.replace(cluster.view().with_node(node()))
    assert observed == []
    cluster.replace(cluster.view().with_replica(replica()))
    assert observed == [1]
