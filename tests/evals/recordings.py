"""Recordings that tests make, and an endpoint that holds its answers back."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

from penstock.evals.comparison.recording import Header, Recorded, header_line, request_line
from tests.evals.fake_gateway import CrowdedServer, served

BEGAN = datetime(2026, 1, 31, 12, tzinfo=UTC)
CHAT = "/v1/chat/completions"


def chat(number: int, at: float = 0.0, **more: Any) -> Recorded:
    """A recorded chat; `more` are fields of the recording's line."""
    body = {"model": "mini", "messages": [{"role": "user", "content": f"Hi {number}"}]}
    told = {"id": f"req-{number}", "at": at, "path": CHAT, "body": {**body, "stream": True}}
    return Recorded(**{**told, **more})


def written(path: Path, *requests: Recorded, redacted: tuple[str, ...] = ()) -> Path:
    """The file that has these requests."""
    lines = [header_line(Header(BEGAN, redacted)), *map(request_line, requests)]
    path.write_bytes(b"".join(lines))
    return path


@dataclass(slots=True)
class Endpoint:
    """Answers each path as told, once so many requests are there."""

    replies: dict[str, tuple[int, str, bytes]]  # status, content type, body, by path
    wait_for: int = 0  # requests that must have come before any is answered
    url: str = ""
    asked: list[tuple[str, dict[str, Any], dict[str, str]]] = field(default_factory=list)
    under_way: int = 0
    most_under_way: int = 0
    changed: threading.Condition = field(default_factory=threading.Condition)


@contextmanager
def endpoint(replies: dict[str, tuple[int, str, bytes]], wait_for: int = 0) -> Iterator[Endpoint]:
    """Serves on a free port."""
    found = Endpoint(replies, wait_for)
    with served(CrowdedServer(("127.0.0.1", 0), _handler_of(found))) as found.url:
        yield found


def _handler_of(found: Endpoint) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer(*found.replies.get(self.path, (200, "application/json", b"{}")))

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            headers = {name.lower(): value for name, value in self.headers.items()}
            with found.changed:
                found.asked.append((self.path, body, headers))
                found.under_way += 1
                found.most_under_way = max(found.most_under_way, found.under_way)
                found.changed.notify_all()
                came = found.changed.wait_for(lambda: len(found.asked) >= found.wait_for, 60)
                found.under_way -= 1
            assert came, "requests were held back until others were answered"
            self._answer(*found.replies[self.path])

        def _answer(self, status: int, content_type: str, body: bytes) -> None:
            self.send_response(status)
            self.send_header("content-type", content_type)
            self.end_headers()  # the answer ends with the connection
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Says nothing."""

    return Handler


__all__ = ["BEGAN", "CHAT", "Endpoint", "chat", "endpoint", "written"]
