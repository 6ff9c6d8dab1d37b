"""Answers GET /metrics, in threads of its own: no scrape takes the event loop's time."""

from __future__ import annotations

import asyncio
import logging
import socket
import threading
from collections.abc import Callable
from datetime import timedelta
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4

from penstock.control.errors import AddressTaken, Unavailable
from penstock.control.supervision.clock import Clock

log = logging.getLogger(__name__)

PATH = "/metrics"
# A caller that says nothing for so long is hung up on.
CALLER_SECONDS = 10
RETRY = timedelta(seconds=5)
POLL_SECONDS = 0.1

Page = Callable[[], bytes]  # the metrics as Prometheus text; raises Unavailable


async def serve_metrics(listen: Callable[[], socket.socket], page: Page, clock: Clock) -> None:
    """Serves until cancelled. Where the address is taken it says so, and takes it once it is free:
    nobody who is watched fails for the watching."""
    server = _Server(await _listening(listen, clock), page)
    thread = threading.Thread(target=server.serve_forever, args=(POLL_SECONDS,), daemon=True)
    thread.start()
    try:
        await asyncio.Event().wait()
    finally:
        await asyncio.to_thread(server.shutdown)
        server.server_close()


async def _listening(listen: Callable[[], socket.socket], clock: Clock) -> socket.socket:
    told = False
    while True:
        try:
            listener = listen()
            listener.listen()
            return listener
        except (AddressTaken, OSError) as error:  # bound by two, it is his who listens first
            if not told:
                log.error("metrics are not served until their address is free: %s", error)
            told = True
            await clock.sleep(RETRY)


class _Server(ThreadingHTTPServer):
    """A thread for each caller, on a socket that is bound already."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, listener: socket.socket, page: Page) -> None:
        super().__init__(listener.getsockname()[:2], _Handler, bind_and_activate=False)
        self.socket.close()
        self.socket = listener
        self.page = page
        self.server_activate()


class _Handler(BaseHTTPRequestHandler):
    """One caller."""

    server: _Server
    timeout = CALLER_SECONDS

    def do_GET(self) -> None:
        """The page, or why there is none."""
        if urlsplit(self.path).path != PATH:
            self._answer(HTTPStatus.NOT_FOUND, f"there is nothing here but {PATH}\n".encode())
            return
        try:
            page = self.server.page()
        except Unavailable as error:
            self._answer(HTTPStatus.SERVICE_UNAVAILABLE, f"{error}\n".encode())
        else:
            self._answer(HTTPStatus.OK, page, CONTENT_TYPE_PLAIN_0_0_4)

    def _answer(self, status: HTTPStatus, body: bytes, kind: str = "text/plain") -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Scrapes are not worth a line."""
