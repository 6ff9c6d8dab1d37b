"""What a client in another process may ask of its test: a small HTTP server beside the system.

It also serves the page that a browser is tried with, so the page's origin is not the gateway's.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

TYPES = {".html": "text/html", ".mjs": "text/javascript", ".js": "text/javascript"}

Deed = Callable[[], Any]


class Backstage:
    """GET gives the files below `root`; POST does the deed of that name and answers its result."""

    def __init__(self, port: int, deeds: Mapping[str, Deed], root: Path) -> None:
        self.told: dict[str, Any] = {}  # what the client POSTed to /result
        self.has_told = threading.Event()
        self.server = ThreadingHTTPServer(("127.0.0.1", port), self._handler(deeds, root))
        self.url = f"http://127.0.0.1:{port}"

    def _handler(self, deeds: Mapping[str, Deed], root: Path) -> type[BaseHTTPRequestHandler]:
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                path = (root / self.path.partition("?")[0].lstrip("/")).resolve()
                found = path.is_file() and path.is_relative_to(root)
                self._answer(200 if found else 404, path.read_bytes() if found else b"", path)

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length", 0)))
                name = self.path.lstrip("/")
                if name == "result":
                    outer.told = json.loads(body)
                    outer.has_told.set()
                    self._answer(204, b"")
                elif name in deeds:
                    self._answer(200, json.dumps(deeds[name]()).encode())
                else:
                    self._answer(404, b"")

            def _answer(self, status: int, body: bytes, path: Path = Path("a.json")) -> None:
                self.send_response(status)
                self.send_header("content-type", TYPES.get(path.suffix, "application/json"))
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                """Says nothing: tests tell what matters."""

        return Handler


@contextmanager
def backstage(port: int, deeds: Mapping[str, Deed], root: Path) -> Iterator[Backstage]:
    """Serves until the end of the block."""
    stage = Backstage(port, deeds, root)
    thread = threading.Thread(target=stage.server.serve_forever)
    thread.start()
    try:
        yield stage
    finally:
        stage.server.shutdown()
        thread.join()
        stage.server.server_close()
