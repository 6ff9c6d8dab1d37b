"""A gRPC server in the test's own process, which may die and come back at its address."""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self

import grpc

OPTIONS = [
    ("grpc.so_reuseport", 0),
    ("grpc.max_receive_message_length", 64 << 20),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.min_recv_ping_interval_without_data_ms", 1000),
]


class FakeServer(ABC):
    """Serves from `async with` on; what it serves says who derives from it."""

    def __init__(self, credentials: grpc.ServerCredentials | None = None) -> None:
        self.address = ""
        self._credentials = credentials  # with TLS
        self._server: grpc.aio.Server

    @abstractmethod
    def _serve_on(self, server: grpc.aio.Server) -> None:
        """Adds its service to a server that is new."""

    async def __aenter__(self) -> Self:
        await self._start("127.0.0.1:0")
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.die()

    async def die(self) -> None:
        """Breaks every stream and closes the port."""
        await self._server.stop(None)

    async def start_again(self) -> None:
        """Serves on the same port as before."""
        await self._start(self.address)

    async def _start(self, address: str) -> None:
        self._server = grpc.aio.server(options=OPTIONS)
        self._serve_on(self._server)
        if self._credentials is None:
            port = self._server.add_insecure_port(address)
        else:
            port = self._server.add_secure_port(address, self._credentials)
        assert port, f"{address} is taken"
        self.address = f"127.0.0.1:{port}"
        await self._server.start()
