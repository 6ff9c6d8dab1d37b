"""Calls to the Inference service of a replica, as supervision needs them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import grpc
import grpc.aio

from penstock.control.errors import InvalidInput, TokenRefused, Unavailable
from penstock.control.node_agent.dependencies import Pulse
from penstock.control.outside.dialer import Dialer
from penstock.control.state.fleet.replica import ReplicaAddress
from penstock.v1 import (
    inference_pb2,
    inference_pb2_grpc,
    microserving_pb2,
    microserving_pb2_grpc,
)

# What the answer to Drain may take beyond the deadline that it was given.
MARGIN = timedelta(seconds=1)
# What a replica may take to fall asleep: to move its weights, and to be asked for its probe.
SLEEP_MARGIN = timedelta(seconds=60)
# What says nothing of the order itself.
_UNDELIVERED = frozenset(
    {
        grpc.StatusCode.UNAVAILABLE,
        grpc.StatusCode.DEADLINE_EXCEEDED,
        grpc.StatusCode.CANCELLED,
        grpc.StatusCode.UNAUTHENTICATED,
    }
)
OTHER_TOKEN = (
    "it lives with another cluster token than this node's, so no gateway with this one can use it:"
    " it is to be replaced; `penstock status` shows how far that is"
)


class ReplicaClient:
    """A `ReplicaProbe` over gRPC. Each call dials anew: a replica's address lives no longer than
    its process, and a connection kept would hide that nobody listens there any more."""

    def __init__(self, dialer: Dialer) -> None:
        self._dialer = dialer

    async def pulse(self, replica: ReplicaAddress, *, within: timedelta) -> Pulse | None:
        """Asks whether the replica is ready; None if there is no answer in time.

        One that refuses our token lives, may have streams, and takes nothing new from us.
        """
        request = inference_pb2.HealthRequest(depth=inference_pb2.HEALTH_DEPTH_READY)
        try:
            reply = await self._asked(replica, "Health", request, within)
        except grpc.aio.AioRpcError as error:
            return Pulse(ok=False, draining=True, detail=OTHER_TOKEN) if _refused(error) else None
        return Pulse(
            ok=reply.ok,
            draining=reply.state == inference_pb2.REPLICA_STATE_DRAINING,
            asleep=reply.state == inference_pb2.REPLICA_STATE_ASLEEP,
            detail=reply.detail,
        )

    async def metrics(self, replica: ReplicaAddress, *, within: timedelta) -> str:
        """The replica's own and its engine's metrics; empty where it is of a version that tells
        none. Raises `Unavailable`."""
        request = inference_pb2.MetricsRequest()
        try:
            reply = await self._asked(replica, "Metrics", request, within)
        except grpc.aio.AioRpcError as error:
            if error.code() is grpc.StatusCode.UNIMPLEMENTED:
                return ""
            raise Unavailable(
                f"the replica at {replica.address} tells no metrics: {error.details()}"
            ) from None
        return str(reply.text)

    async def drain(self, replica: ReplicaAddress, deadline: timedelta) -> None:
        """Lets running calls finish; returns when they have, at the deadline, or if it is gone.

        Raises `TokenRefused`: then it was not asked, and only a signal reaches it.
        """
        request = inference_pb2.DrainRequest(deadline_ms=int(deadline.total_seconds() * 1000))
        try:
            await self._asked(replica, "Drain", request, deadline + MARGIN)
        except grpc.aio.AioRpcError as error:
            if _refused(error):
                raise TokenRefused(f"the replica at {replica.address}: {OTHER_TOKEN}") from None

    async def sleep(self, replica: ReplicaAddress, drain: timedelta) -> str:
        """Lets running calls finish and puts it to sleep; why it does not, empty: it sleeps."""
        request = inference_pb2.SleepRequest(deadline_ms=int(drain.total_seconds() * 1000))
        try:
            await self._asked(replica, "Sleep", request, drain + SLEEP_MARGIN)
        except grpc.aio.AioRpcError as error:
            if error.code() is grpc.StatusCode.UNIMPLEMENTED:
                return "its version knows no sleep"
            return error.details() or error.code().name
        return ""

    async def wake(self, replica: ReplicaAddress, *, within: timedelta) -> int:
        """Wakes it; returns how often its process was woken by now. Raises `Unavailable`."""
        try:
            reply = await self._asked(replica, "Wake", inference_pb2.WakeRequest(), within)
        except grpc.aio.AioRpcError as error:
            why = error.details() or error.code().name
            if error.code() is grpc.StatusCode.DEADLINE_EXCEEDED:
                why = f"no answer within {within.total_seconds():g} s"
            raise Unavailable(why) from None
        return int(reply.wakes)

    async def keep_adapters(
        self, replica: ReplicaAddress, keep: inference_pb2.KeepAdapters, *, within: timedelta
    ) -> None:
        """Tells the replica what it is to hold. Raises `Unavailable` where it did not hear, and
        `InvalidInput` where it refuses, as one does that is of an older version."""
        request = inference_pb2.AdaptersRequest(keep=keep)
        try:
            await self._asked(replica, "Adapters", request, within)
        except grpc.aio.AioRpcError as error:
            kind = Unavailable if error.code() in _UNDELIVERED else InvalidInput
            raise kind(
                f"the replica at {replica.address} did not take what it is to hold: "
                f"{error.code().name} {error.details()}"
            ) from None

    async def keep_router_tokens(
        self,
        replica: ReplicaAddress,
        sha256s: Sequence[bytes],
        valid: timedelta,
        *,
        within: timedelta,
    ) -> None:
        """Says which tokens its MicroServing takes by REST from now on, and for how long. Raises
        `Unavailable`."""
        request = microserving_pb2.KeepRouterTokensRequest(
            sha256s=sha256s, valid_ms=valid // timedelta(milliseconds=1)
        )
        stub = microserving_pb2_grpc.MicroServingStub
        try:
            await self._asked(replica, "KeepRouterTokens", request, within, stub)
        except grpc.aio.AioRpcError as error:
            raise Unavailable(
                f"the replica at {replica.address} did not take tokens: {error.details()}"
            ) from None

    async def _asked(
        self,
        replica: ReplicaAddress,
        method: str,
        request: Any,
        within: timedelta,
        service: Any = inference_pb2_grpc.InferenceStub,
    ) -> Any:
        """The answer to one call. Raises what gRPC does."""
        async with self._dialer.plain_channel(replica.address) as channel:
            stub = service(channel)
            return await getattr(stub, method)(
                request, timeout=within.total_seconds(), metadata=self._dialer.shown_to(replica)
            )


def _refused(error: grpc.aio.AioRpcError) -> bool:
    return error.code() is grpc.StatusCode.UNAUTHENTICATED
