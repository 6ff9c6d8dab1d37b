"""Dials node agents. (A node agent dials the head with its own client.)"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import grpc

from penstock.control.errors import Code, HoldsStill, NodeUnreachable, NotFound, ReplicaRefused
from penstock.control.outside.dialer import Dialer
from penstock.control.placement.placement import ReplicaOrder
from penstock.control.rpc.wire import (
    cluster_stamp,
    keep_adapters,
    memory_fit,
    replica_spec,
    replica_status,
)
from penstock.control.state.fleet.memory import MemoryFit
from penstock.control.state.fleet.replica import KeptAdapter, NodeId, ReplicaId, ReplicaStatus
from penstock.control.state.stamp import Stamp
from penstock.v1 import nodes_pb2, nodes_pb2_grpc

# A peer that was restarted is found again within a second, not after minutes of backoff.
_OPTIONS = [
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 500),
    ("grpc.max_reconnect_backoff_ms", 1000),
    ("grpc.use_local_subchannel_pool", 1),
]
START_TIMEOUT = timedelta(seconds=10)
KEEP_TIMEOUT = timedelta(seconds=5)
FIT_TIMEOUT = timedelta(seconds=8)
# Beyond the drain itself: the agent's own last resort is a kill.
STOP_MARGIN = timedelta(seconds=30)
# FAILED_PRECONDITION is none of them: that agent obeys another head, or a later order.
_REFUSALS = (grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.UNIMPLEMENTED)


class GrpcAgentClient:
    """One node agent's NodeAgent service."""

    def __init__(self, address: str, dialer: Dialer, stamp: Callable[[], Stamp] = Stamp) -> None:
        self._address = address
        self._stamp = stamp  # whose orders ours are, at this moment
        self._metadata = dialer.metadata
        self._channel = dialer.channel(address, _OPTIONS)
        self._stub = nodes_pb2_grpc.NodeAgentStub(self._channel)  # type: ignore[no-untyped-call]

    async def start_replica(self, order: ReplicaOrder) -> ReplicaStatus:
        """Asks for a replica; raises NodeUnreachable, HoldsStill or ReplicaRefused."""
        request = nodes_pb2.StartReplicaRequest(spec=replica_spec(order))
        try:
            reply = await self._ordered(self._stub.StartReplica, request, START_TIMEOUT)
        except grpc.aio.AioRpcError as error:
            self._raise_if_refused(error)
            raise self._unreachable("start a replica", error) from error
        return replica_status(reply)

    async def stop_replica(
        self, replica_id: ReplicaId, drain: timedelta, *, sleep: bool = False
    ) -> None:
        """Asks to drain and stop a replica, or to put it to sleep; raises NodeUnreachable or
        HoldsStill."""
        request = nodes_pb2.StopReplicaRequest(
            replica_id=replica_id,
            drain_ms=drain // timedelta(milliseconds=1),
            sleep=sleep,
        )
        try:
            await self._ordered(self._stub.StopReplica, request, drain + STOP_MARGIN)
        except grpc.aio.AioRpcError as error:
            self._raise_if_not_in_command(error)
            raise self._unreachable("stop a replica", error) from error

    async def keep_adapters(
        self, replica_id: ReplicaId, kept: Sequence[KeptAdapter], dropped: Sequence[str]
    ) -> None:
        """Says what a replica is to hold; raises NodeUnreachable, HoldsStill, `unknown-replica` or
        ReplicaRefused."""
        request = nodes_pb2.KeepAdaptersRequest(
            replica_id=replica_id,
            keep=keep_adapters(kept, dropped),
        )
        try:
            await self._ordered(self._stub.KeepAdapters, request, KEEP_TIMEOUT)
        except grpc.aio.AioRpcError as error:
            if error.code() is grpc.StatusCode.NOT_FOUND:
                raise NotFound(
                    f"the node agent: {error.details()}", Code.UNKNOWN_REPLICA
                ) from error
            self._raise_if_refused(error)
            raise self._unreachable("take what a replica is to hold", error) from error

    async def fit(self, node: NodeId, order: ReplicaOrder) -> MemoryFit:
        """What a replica would take there; raises NodeUnreachable, or ReplicaRefused by an agent
        that is too old to tell."""
        request = nodes_pb2.FitRequest(spec=replica_spec(order))
        limit = FIT_TIMEOUT.total_seconds()
        try:
            reply = await self._stub.Fit(request, timeout=limit, metadata=self._metadata)
        except grpc.aio.AioRpcError as error:
            self._raise_if_refused(error)
            raise self._unreachable("tell what a replica would take", error) from error
        return memory_fit(reply, node)

    async def close(self) -> None:
        """Hangs up."""
        await self._channel.close(grace=None)

    async def _ordered(self, call: Any, request: Any, limit: timedelta) -> Any:
        """The answer to an order. Where a heartbeat's answer, with a later stamp, came to the agent
        before the order did, the order is sent once more."""
        stamp = self._stamp()
        for last in (False, True):
            request.stamp.CopyFrom(cluster_stamp(stamp))
            try:
                return await call(request, timeout=limit.total_seconds(), metadata=self._metadata)
            except grpc.aio.AioRpcError as error:
                sent, stamp = stamp, self._stamp()
                refused = error.code() is grpc.StatusCode.FAILED_PRECONDITION
                if last or not refused or stamp == sent:
                    raise
        raise AssertionError("the last try returns or raises")

    def _raise_if_refused(self, error: grpc.aio.AioRpcError) -> None:
        if error.code() in _REFUSALS:
            raise ReplicaRefused(f"the node agent refused: {error.details()}") from error
        self._raise_if_not_in_command(error)

    def _raise_if_not_in_command(self, error: grpc.aio.AioRpcError) -> None:
        if error.code() is grpc.StatusCode.FAILED_PRECONDITION:
            raise HoldsStill(f"the node agent refused this head: {error.details()}") from error

    def _unreachable(self, what: str, error: grpc.aio.AioRpcError) -> NodeUnreachable:
        return NodeUnreachable(
            f"the node agent at {self._address} did not {what}: "
            f"{error.code().name} {error.details()}"
        )
