"""The head's own Health calls to replicas, over connections that are kept."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from contextlib import suppress
from datetime import timedelta

import grpc
import grpc.aio

from penstock.control.outside.dialer import Dialer
from penstock.control.state.fleet.pings import Ping
from penstock.control.state.fleet.replica import ReplicaAddress
from penstock.v1 import inference_pb2, inference_pb2_grpc

# Connections beyond this many: the one that was not used for longest is closed.
MAX_KEPT = 4096
# A few tokens may wait behind long prompts.
DEEP_TIMEOUT = timedelta(seconds=30)
_OPTIONS = [
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 500),
    ("grpc.max_reconnect_backoff_ms", 1000),
]


class GrpcReplicaPinger:
    """Health calls to replicas. A call that fails ends its connection; the next dials anew."""

    def __init__(self, timeout: timedelta, dialer: Dialer) -> None:
        self._timeout = timeout
        self._dialer = dialer
        self._channels: OrderedDict[str, grpc.aio.Channel] = OrderedDict()

    async def ping(self, replica: ReplicaAddress) -> Ping:
        """One Health call: is the process there, and does it answer in time?"""
        try:
            await self._health(replica, inference_pb2.HEALTH_DEPTH_LIVE, self._timeout)
        except grpc.aio.AioRpcError as error:
            if error.code() is grpc.StatusCode.UNAVAILABLE and await self._refuses(replica.address):
                return Ping.REFUSED
            return Ping.TIMED_OUT
        return Ping.ANSWERED

    async def deep_check(self, replica: ReplicaAddress) -> bool:
        """Whether the engine does its work; true where the replica is busy starting or draining, or
        cannot be reached: that is for pings to say."""
        try:
            reply = await self._health(replica, inference_pb2.HEALTH_DEPTH_DEEP, DEEP_TIMEOUT)
        except grpc.aio.AioRpcError as error:
            return error.code() is not grpc.StatusCode.DEADLINE_EXCEEDED
        return bool(reply.ok) or reply.state != inference_pb2.REPLICA_STATE_READY

    async def close(self) -> None:
        """Hangs up on every replica."""
        while self._channels:
            await self._channels.popitem()[1].close(grace=None)

    async def _health(
        self, replica: ReplicaAddress, depth: inference_pb2.HealthDepth, limit: timedelta
    ) -> inference_pb2.HealthReply:
        address = replica.address
        channel = await self._channel(address)
        stub = inference_pb2_grpc.InferenceStub(channel)  # type: ignore[no-untyped-call]
        request = inference_pb2.HealthRequest(depth=depth)
        try:
            reply: inference_pb2.HealthReply = await stub.Health(
                request, timeout=limit.total_seconds(), metadata=self._dialer.shown_to(replica)
            )
        except grpc.aio.AioRpcError:
            if self._channels.get(address) is channel:
                del self._channels[address]
                await channel.close(grace=None)
            raise
        return reply

    async def _channel(self, address: str) -> grpc.aio.Channel:
        channel = self._channels.pop(address, None)
        if channel is None:
            channel = self._dialer.plain_channel(address, _OPTIONS)
        self._channels[address] = channel
        if len(self._channels) > MAX_KEPT:
            await self._channels.popitem(last=False)[1].close(grace=None)
        return channel

    async def _refuses(self, address: str) -> bool:
        """Whether the machine itself says that nothing listens there: gRPC's own words for it are
        not to be relied on."""
        host, _, port = address.rpartition(":")
        try:
            async with asyncio.timeout(self._timeout.total_seconds()):
                _, writer = await asyncio.open_connection(host.strip("[]"), int(port))
        except ConnectionRefusedError:
            return True
        except (OSError, TimeoutError, ValueError):
            return False
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()
        return False
