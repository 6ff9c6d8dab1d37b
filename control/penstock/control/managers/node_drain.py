"""Emptying nodes: an operator asks for it, the plan moves the replicas."""

from __future__ import annotations

from dataclasses import replace

from penstock.control.errors import UnknownNode
from penstock.control.managers.keeper import Keeper
from penstock.control.state.cluster import ClusterView, some_of
from penstock.control.state.replica import Node, NodeId
from penstock.control.store.store import Author


async def drain_node(keeper: Keeper, node_id: str, author: Author, *, draining: bool) -> Node:
    """From now on the node gets no replicas, and those that it has are moved; or it may have some
    again. Raises UnknownNode."""

    def step(view: ClusterView) -> ClusterView:
        node = view.nodes.get(NodeId(node_id))
        if node is None:
            raise UnknownNode(f"no node {node_id!r}: there are {some_of(view.nodes)}")
        return view.with_node(replace(node, draining=draining))

    return (await keeper.desire(step, author)).nodes[NodeId(node_id)]
