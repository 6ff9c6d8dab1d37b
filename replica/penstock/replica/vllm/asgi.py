"""One request to an ASGI app without a socket: body in, verbatim bytes out into an `Outbox`.

What goes wrong on the way becomes a `Failed`: answers of status 400 and above, events by which the
app tells of an error after its 200, an end before the engine was done. Knows ASGI, not vLLM.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from penstock.replica.vllm import errors
from penstock.replica.vllm.outbox import Outbox
from penstock.replica.vllm.tap import CURRENT, CallTap

Message = MutableMapping[str, Any]
App = Callable[
    [Message, Callable[[], Awaitable[Message]], Callable[[Message], Awaitable[None]]],
    Awaitable[None],
]


class Exchange:
    """The app's picture of one client. `run` it in a task; read `outbox` and `status` outside."""

    def __init__(self, app: App, tap: CallTap) -> None:
        self.outbox = Outbox()
        self.status = 0
        self.content_type = ""
        self._app = app
        self._tap = tap
        self._body_read = False
        self._gone = asyncio.Event()
        self._error_body: list[bytes] = []

    async def run(self) -> None:
        """The whole exchange; ends the outbox in every case, raises nothing but a cancellation."""
        CURRENT.set(self._tap)
        try:
            await self._app(self._scope(), self._receive, self._send)
        except Exception as error:
            # The app's own handlers have answered already; what is left here is its last resort.
            self.outbox.fail(self._tap.lost or errors.internal(error))
        finally:
            self._close()

    def hang_up(self) -> None:
        """The client is gone: the app stops, and aborts its requests in the engine."""
        self._tap.hung_up = True
        self._gone.set()
        self.outbox.end()

    def _close(self) -> None:
        if self._tap.lost:
            self.outbox.fail(self._tap.lost)
        elif self.status >= 400:
            body = b"".join(self._error_body)
            self.outbox.fail(errors.from_answer(self.status, body, self._tap.call.path))
        elif not self._tap.complete():
            self.outbox.fail(errors.cut_short())
        else:
            self.outbox.end()

    def _scope(self) -> Message:
        call = self._tap.call
        headers = [
            (b"content-type", b"application/json"),
            (b"x-request-id", call.request_id.encode()),
        ]
        if call.traceparent:
            headers.append((b"traceparent", call.traceparent.encode()))
        return {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": "1.1",
            "method": call.method,
            "scheme": "http",
            "path": call.path,
            "raw_path": call.path.encode(),
            "query_string": b"",
            "root_path": "",
            "headers": headers,
            "client": ("127.0.0.1", 1),
            "server": ("replica", 80),
            "state": {},
        }

    async def _receive(self) -> Message:
        if not self._body_read:
            self._body_read = True
            return {"type": "http.request", "body": self._tap.call.body, "more_body": False}
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = int(message["status"])
            self.content_type = _content_type(message.get("headers", ()))
        elif body := message.get("body"):
            await self._send_body(body)

    async def _send_body(self, body: bytes) -> None:
        if self.status >= 400:
            self._error_body.append(body)
        elif self._tap.lost:
            self.outbox.fail(self._tap.lost)
        elif body.startswith(errors.STREAM_ERROR):
            self.outbox.fail(errors.from_event(body, self._tap.call.path))
        else:
            await self.outbox.put(body, self._tap.take_groups())


def _content_type(headers: Any) -> str:
    for name, value in headers:
        if name.lower() == b"content-type":
            content_type: str = value.decode().partition(";")[0]
            return content_type
    return ""


__all__ = ["App", "Exchange", "Message"]
