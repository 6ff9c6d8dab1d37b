"""Nodes: hears node agents."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import grpc

from penstock.control.errors import UnknownNode
from penstock.control.managers.health import HealthManager
from penstock.control.rpc.wire import (
    cluster_stamp,
    node_facts,
    node_intent,
    replica_status,
    resources,
    stamp,
)
from penstock.control.state.replica import NodeId
from penstock.control.state.stamp import Stamp
from penstock.v1 import nodes_pb2, nodes_pb2_grpc

Context = grpc.aio.ServicerContext[Any, Any]


class NodesService(nodes_pb2_grpc.NodesServicer):
    """nodes.proto, service Nodes."""

    def __init__(
        self, health: HealthManager, heartbeat: timedelta, own_stamp: Callable[[], Stamp] = Stamp
    ) -> None:
        self._health = health
        self._stamp = own_stamp
        self._heartbeat_ms = heartbeat // timedelta(milliseconds=1)

    async def Register(
        self, request: nodes_pb2.RegisterNodeRequest, context: Context
    ) -> nodes_pb2.RegisterNodeReply:
        """Takes in a node, with everything that runs there."""
        facts = node_facts(request.node)
        if not facts.id or not facts.agent_address:
            await context.abort(
                grpc.StatusCode.INVALID_ARGUMENT,
                f"node_id is {facts.id!r} and agent_address {facts.agent_address!r}: name both",
            )
        reports = [replica_status(r) for r in request.replicas]
        await self._health.node_registered(facts, reports, stamp(request.stamp))
        return nodes_pb2.RegisterNodeReply(
            heartbeat_ms=self._heartbeat_ms, stamp=cluster_stamp(self._stamp())
        )

    async def Heartbeat(
        self, request: nodes_pb2.HeartbeatRequest, context: Context
    ) -> nodes_pb2.HeartbeatReply:
        """Takes in a node's replicas; an unknown node is told to register."""
        reports = [replica_status(r) for r in request.replicas]
        node_id = NodeId(request.node_id)
        try:
            await self._health.node_heard(
                node_id,
                resources(request.resources),
                reports,
                stamp(request.stamp),
                node_intent(request.intent),
            )
        except UnknownNode:
            return nodes_pb2.HeartbeatReply(unknown=True, stamp=cluster_stamp(self._stamp()))
        return nodes_pb2.HeartbeatReply(stamp=cluster_stamp(self._stamp()))
