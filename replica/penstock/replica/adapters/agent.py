"""Asks the node agent: the channel to it, and what adapters are made of."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import grpc
import grpc.aio

from penstock.replica.values import EngineError
from penstock.v1 import nodes_pb2, nodes_pb2_grpc

# The agent is on this machine: a proxy that the environment names is for others.
_OPTIONS: Final = (("grpc.enable_http_proxy", 0),)

_PATIENCE: Final = 10.0  # seconds
_MARGIN: Final = 1.0  # seconds: who asks gives up first, and knows why
_AGAIN: Final = 0.2  # seconds between two tries

Metadata = tuple[tuple[str, str], ...] | None


def metadata_of(own_token: str) -> Metadata:
    """What shows the agent which of its replicas calls."""
    return (("authorization", f"Bearer {own_token}"),) if own_token else None


@asynccontextmanager
async def agent_stub(address: str) -> AsyncIterator[Any]:
    """A client of the agent at `address` (host:port)."""
    async with grpc.aio.insecure_channel(address, _OPTIONS) as channel:
        yield nodes_pb2_grpc.NodeAgentStub(channel)  # type: ignore[no-untyped-call]


class AgentContents:
    """The bytes of adapters as the agent hands them out. See `Contents`."""

    def __init__(
        self, address: str, timeout: float, own_token: str = "", patience: float = _PATIENCE
    ) -> None:
        """`timeout`: seconds that whoever asks waits for one. `patience`: seconds that an agent
        which is away, or cannot reach the head, is asked again."""
        self._address = address
        self._timeout = timeout
        self._patience = patience
        self._metadata = metadata_of(own_token)

    async def directory(self, digest: str) -> Path:
        """Where the content lies, checked just now. Raises `EngineError`."""
        try:
            reply = await self._asked(nodes_pb2.AdapterContentRequest(digest=digest))
        except grpc.aio.AioRpcError as error:
            raise EngineError(
                f"the node agent does not hand out sha256 {digest}: {error.code().name}: "
                f"{error.details()}"
            ) from None
        directory = Path(reply.directory)
        if not directory.is_absolute():
            raise EngineError(
                f"the node agent says that sha256 {digest} lies at {reply.directory!r}, which is "
                "no absolute path"
            )
        return directory

    async def _asked(self, request: nodes_pb2.AdapterContentRequest) -> Any:
        """The agent's answer. Agents and heads are started again: that is no reason to fail calls
        that can wait for it."""
        until = time.monotonic() + self._patience
        while True:
            try:
                async with agent_stub(self._address) as stub:
                    return await stub.AdapterContent(
                        request, timeout=self._timeout + _MARGIN, metadata=self._metadata
                    )
            except grpc.aio.AioRpcError as error:
                away = error.code() is grpc.StatusCode.UNAVAILABLE
                if not away or time.monotonic() >= until:
                    raise
            await asyncio.sleep(_AGAIN)
