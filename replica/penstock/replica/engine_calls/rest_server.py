"""Serves MicroServing's REST on a port of the replica's own, inside the replica's task group."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import grpc.aio
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from penstock.replica.adapters.agent import metadata_of
from penstock.replica.engine_calls.rest import make_app
from penstock.replica.engine_calls.router_tokens import RouterTokens
from penstock.replica.ports import host_of, served_at
from penstock.v1 import microserving_pb2_grpc

_STOP_PATIENCE_S: Final = 2
_HEAD_LIMIT: Final = 16 << 10  # bytes of a request's line and headers
_MOST_AT_ONCE: Final = 1024  # connections and requests
HEAD_WITHIN_S: Final = 10.0
# Prompts of millions of tokens; the service is this process's own, not behind a proxy.
_OPTIONS: Final = (
    ("grpc.enable_http_proxy", 0),
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.max_send_message_length", -1),
    ("grpc.max_receive_message_length", -1),
)


class _Connection(H11Protocol):
    """One that is closed where it begins no request for some seconds: of whoever connects, before
    a token was seen. uvicorn waits for a request's head for ever."""

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        if len(self.connections) > _MOST_AT_ONCE:
            transport.close()
        self._look_again()

    def _look_again(self) -> None:
        self.loop.call_later(HEAD_WITHIN_S, self._look, self.cycle)

    def _look(self, before: Any) -> None:
        if self.transport.is_closing():
            return
        if self.cycle is before and (before is None or before.response_complete):
            return self.transport.close()
        self._look_again()


class RestServer(uvicorn.Server):
    """uvicorn without its signal handlers, on `listen`'s host: on one of its ports where it names
    a range, else on any free one. Raises `CannotLoad` where there is none."""

    def __init__(self, listen: str, service: str, callers_token: str, tokens: RouterTokens) -> None:
        """`service`: "host:port" of the replica's gRPC server."""
        self._listener = served_at(_beside(listen), _bound)
        self.address = f"{host_of(listen)}:{self._listener.getsockname()[1]}"
        self._channel = grpc.aio.insecure_channel(service, _OPTIONS)
        stub = microserving_pb2_grpc.MicroServingStub(self._channel)  # type: ignore[no-untyped-call]
        super().__init__(
            uvicorn.Config(
                make_app(stub, metadata_of(callers_token), tokens),
                ws="none",
                http=_Connection,  # h11 is the one whose limit on headers can be set
                h11_max_incomplete_event_size=_HEAD_LIMIT,
                limit_concurrency=_MOST_AT_ONCE,
                proxy_headers=False,
                server_header=False,
                log_config=None,
                access_log=False,
                lifespan="off",
                timeout_graceful_shutdown=_STOP_PATIENCE_S,
            )
        )

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leaves signals alone."""
        yield

    async def run_until_stopped(self) -> None:
        """Serves until it is cancelled, and then for as long as requests run, but not for long."""
        try:
            await self.serve([self._listener])
        except asyncio.CancelledError:
            if self.started:
                await self.shutdown([self._listener])
            raise
        finally:
            await self._channel.close(None)


def _beside(listen: str) -> str:
    """Where to listen beside the gRPC server: at one of its ports, if they are a range."""
    host, _, ports = listen.rpartition(":")
    return listen if "-" in ports else f"{host}:0"


def _bound(address: str) -> socket.socket:
    host, _, port = address.rpartition(":")
    family = socket.AF_INET6 if host.startswith("[") else socket.AF_INET
    listener = socket.socket(family)
    try:
        listener.bind((host.strip("[]"), int(port)))
    except OSError as error:
        listener.close()
        raise RuntimeError(f"cannot listen on {address}: {error}") from None
    return listener
