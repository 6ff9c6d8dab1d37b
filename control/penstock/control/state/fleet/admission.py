"""Which node agents and gateways the head lets in, and why others are not. Pure.

Whoever is not let in changes nothing: not who is live, not whether this head is in command.
"""

from __future__ import annotations

from penstock.control.state.cluster import ClusterView
from penstock.control.state.fleet.replica import NodeFacts, NodeIntent, NodeState
from penstock.control.state.stamp import Stamp, contradiction


def second_agent(view: ClusterView, facts: NodeFacts) -> str:
    """Why this agent may not speak for its node: another one does, and lives. Empty: it may.

    One that is silent, or has said that it stops, is followed by whoever comes.
    """
    node = view.nodes.get(facts.id)
    if node is None or node.facts.instance in ("", facts.instance):
        return ""
    live = node.state in (NodeState.READY, NodeState.EXPECTED)
    if not live or node.intent is not NodeIntent.SERVING:
        return ""
    return (
        f"another agent of node {facts.id!r} is live at {node.facts.agent_address}: give this one a"
        " --node-id of its own, or stop the other one"
    )


def stranger(view: ClusterView, own: Stamp, who: str, observed: Stamp) -> str:
    """Why nobody with this stamp is let in; empty: they are, though this head may have to hold
    still for it. `who`: "node n1" or "gateway gw-1".

    Only one that this store knows, of its own cluster, can know better than the store.
    """
    kind, _, name = who.partition(" ")
    gateways = view.gateways.keys() | {*view.tenancy.shares.members}  # the store keeps the latter
    known = name in (view.nodes if kind == "node" else gateways)
    if known and observed.cluster_id == own.cluster_id:
        return ""
    return contradiction(own, observed)
