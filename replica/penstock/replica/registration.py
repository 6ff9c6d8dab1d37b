"""Tells the node agent of this replica."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

import grpc
import grpc.aio

from penstock.replica.endings import NotRegistered
from penstock.v1 import nodes_pb2, nodes_pb2_grpc

log = logging.getLogger(__name__)

_TIMEOUT = 10.0  # seconds
_AGAIN = 1.0  # seconds
# The agent is on this machine: a proxy that the environment names is for others.
_OPTIONS = (("grpc.enable_http_proxy", 0),)


class Registration:
    """Registers with the agent at `agent` (host:port), as one of the cluster with this token."""

    def __init__(
        self, agent: str, replica_id: str, address: str, pid: int, cluster_token: str = ""
    ) -> None:
        self._agent = agent
        self._metadata = (("authorization", f"Bearer {cluster_token}"),) if cluster_token else None
        self._hello = nodes_pb2.RegisterReplicaRequest(
            replica_id=replica_id, address=address, pid=pid
        )

    async def announce(self) -> None:
        """The first word, before serving. Raises `NotRegistered`."""
        try:
            await self._register()
        except grpc.aio.AioRpcError as error:
            raise NotRegistered(
                f"cannot register with the node agent at {self._agent}: "
                f"{error.code().name}: {error.details()}"
            ) from None

    async def tell_ready(
        self, max_model_len: int, capacity: int, endpoints: Sequence[str] = ()
    ) -> None:
        """The second word. Tries until it is heard: an agent may be down, and comes back."""
        self._hello.max_model_len = max_model_len
        self._hello.capacity = capacity
        self._hello.endpoints[:] = endpoints
        while True:
            try:
                return await self._register()
            except grpc.aio.AioRpcError as error:
                log.warning("the node agent does not answer", extra={"code": error.code().name})
                await asyncio.sleep(_AGAIN)

    async def _register(self) -> None:
        async with grpc.aio.insecure_channel(self._agent, _OPTIONS) as channel:
            stub = nodes_pb2_grpc.NodeAgentStub(channel)  # type: ignore[no-untyped-call]
            await stub.RegisterReplica(self._hello, timeout=_TIMEOUT, metadata=self._metadata)


__all__ = ["Registration"]
