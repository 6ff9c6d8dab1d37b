"""Serves the admin app with uvicorn, inside the head's own task group."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn
from fastapi import FastAPI

from penstock.control.settings import TlsFiles

STOP_PATIENCE_SECONDS = 3
HEAD_LIMIT = 16 << 10  # bytes of a request's line and headers


class AdminServer(uvicorn.Server):
    """uvicorn without its signal handlers: the head's owner decides when to stop."""

    def __init__(
        self,
        app: FastAPI,
        listener: socket.socket,
        tls: TlsFiles = TlsFiles(),  # noqa: B008
    ) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                ws="none",
                http="h11",  # the one whose limit on headers can be set
                h11_max_incomplete_event_size=HEAD_LIMIT,
                ssl_certfile=tls.cert,
                ssl_keyfile=tls.key,
                proxy_headers=False,
                server_header=False,
                log_config=None,
                access_log=False,
                lifespan="off",
                timeout_graceful_shutdown=STOP_PATIENCE_SECONDS,
            )
        )
        self._listener = listener

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leaves signals alone."""
        yield

    async def run_until_stopped(self) -> None:
        """Serves until `stop` was called and the running requests are answered."""
        await self.serve([self._listener])

    def stop(self) -> None:
        """No new connections from now on."""
        self.should_exit = True
