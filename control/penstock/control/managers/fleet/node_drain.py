"""Emptying nodes, and forgetting them: an operator asks for it, the plan moves the replicas."""

from __future__ import annotations

from dataclasses import replace

from penstock.control.errors import Code, NotFound, PenstockError
from penstock.control.managers.cluster_store import ClusterStore
from penstock.control.managers.write import Write
from penstock.control.state.cluster import ClusterView, some_of
from penstock.control.state.fleet.replica import Evidence, Node, NodeId
from penstock.control.state.problems import is_unobserved
from penstock.control.supervision.clock import Clock


async def drain_node(cluster: ClusterStore, node_id: str, write: Write, *, draining: bool) -> Node:
    """From now on the node gets no replicas, and those that it has are moved, their streams at once
    where the change says so; or it may have some again. Raises `unknown-node`, and
    `revision-mismatch` as the next one does."""

    def step(view: ClusterView) -> ClusterView:
        node = node_in(view, node_id)
        write.check(node, f"node {node_id!r}")
        return view.with_node(replace(node, draining=draining, hand_over=write.hand_over))

    what = f"{'drain' if draining else 'use'} node {node_id}"
    return (await write.apply(cluster, step, what)).nodes[NodeId(node_id)]


async def forget_node(cluster: ClusterStore, node_id: str, write: Write, clock: Clock) -> None:
    """Takes a node out of the view, with the replicas that it had: its machine is gone for good.

    Raises `unknown-node`, and `conflict` where there is a sign of life of it.
    """
    live = cluster.liveness

    def step(view: ClusterView) -> ClusterView:
        node = node_in(view, node_id)
        write.check(node, f"node {node_id!r}")
        mine = [r for r in view.replicas.values() if r.node == node.id]
        if not is_unobserved(node, live.known, clock.steady()):
            raise PenstockError(
                f"node {node_id!r} is heard: `penstock drain {node_id}`, stop its agent, then try"
                " again",
                Code.CONFLICT,
            )
        if answering := sorted(r.id for r in mine if r.evidence is Evidence.ANSWERS):
            raise PenstockError(
                f"on node {node_id!r} {', '.join(answering)} answered just now: stop what runs"
                " there, or wait until that is known",
                Code.CONFLICT,
            )
        for replica in mine:
            view = view.without_replica(replica.id)
        return view.without_node(node.id)

    await write.apply(cluster, step, f"delete node {node_id}")


def node_in(view: ClusterView, node_id: str) -> Node:
    """The node of this id. Raises `unknown-node`."""
    node = view.nodes.get(NodeId(node_id))
    if node is None:
        raise NotFound(f"no node {node_id!r}: there are {some_of(view.nodes)}", Code.UNKNOWN_NODE)
    return node
