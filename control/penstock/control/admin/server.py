"""Serves the admin app with uvicorn, inside the head's own task group."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn
from fastapi import FastAPI

STOP_PATIENCE_SECONDS = 3


class AdminServer(uvicorn.Server):
    """uvicorn without its signal handlers: the head's owner decides when to stop."""

    def __init__(self, app: FastAPI, listener: socket.socket) -> None:
        super().__init__(
            uvicorn.Config(
                app,
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
