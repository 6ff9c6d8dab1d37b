"""One request to an ASGI app without a socket: body in, verbatim bytes out into a `Sink`.

What goes wrong on the way becomes a `Failed`: answers of status 400 and above, events by which the
app tells of an error after its 200, an end before the engine was done. Knows ASGI, not vLLM.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from penstock.replica.engine import Sink
from penstock.replica.vllm.failures import errors
from penstock.replica.vllm.serving.tap import CURRENT, CallTap

Message = MutableMapping[str, Any]
App = Callable[
    [Message, Callable[[], Awaitable[Message]], Callable[[Message], Awaitable[None]]],
    Awaitable[None],
]


class Exchange:
    """The app's picture of one client, whose answer goes into a sink. `run` it once.

    `path`: what the app calls the endpoint.
    """

    def __init__(self, app: App, path: str, tap: CallTap, sink: Sink) -> None:
        self._app = app
        self._path = path
        self._tap = tap
        self._sink = sink
        self._status = 0
        self._content_type = ""
        self._begun = False
        self._body_read = False
        self._gone = asyncio.Event()
        tap.write_gathered = self._write_gathered

    async def run(self) -> None:
        """The whole exchange; ends the sink in every case but a cancellation, which it raises."""
        token = CURRENT.set(self._tap)
        try:
            await self._app(self._scope(), self._receive, self._send)
            self._end()
        except Exception as error:
            # The app's own handlers have answered already; what is left here is its last resort.
            self._sink.fail(self._tap.lost or self._tap.refused or errors.internal(error))
        finally:
            CURRENT.reset(token)
            await self._tap.close()

    def hang_up(self) -> None:
        """The client is gone: the app stops, and aborts its requests in the engine."""
        self._tap.hung_up = True
        self._gone.set()

    def _end(self) -> None:
        if self._tap.lost:
            self._sink.fail(self._tap.lost)
        elif self._status >= 400:
            self._sink.fail(self._tap.refused or errors.unexplained(self._status))
        elif not self._tap.complete():
            self._sink.fail(errors.cut_short())
        elif self._tap.apart is not None and self._tap.apart.had:
            self._sink.fail(errors.bad_resume("the answer has not so many events"))
        else:
            self._begin()
            self._sink.finish(self._tap.finished())

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
            "path": self._path,
            "raw_path": self._path.encode(),
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
        if message["type"] == "http.response.body":
            body = message.get("body")
            if body and self._tap.written:
                body, self._tap.written = self._tap.written, b""
            # Runs for every token of every stream.
            if (
                body
                and (self._begun or self._begin_with(body))
                and self._tap.lost is None
                and not body.startswith(errors.STREAM_ERRORS)
            ):
                tap = self._tap
                if tap.apart is not None and tap.apart.keeps(body):
                    return
                if self._sink.write(body, 1, tap.take_groups(), tap.take_tokens()):
                    await self._sink.room()
            elif body:
                self._keep_from_client()
        elif message["type"] == "http.response.start":
            self._status = int(message["status"])
            self._content_type = _content_type(message.get("headers", ()))

    async def _write_gathered(self) -> None:
        """What was kept of one output's events."""
        tap = self._tap
        if tap.apart is None:
            return
        body, events = tap.apart.taken()
        if events and self._sink.write(body, events, tap.take_groups(), tap.take_tokens()):
            await self._sink.room()

    def _begin_with(self, body: bytes) -> bool:
        """Whether these are the first bytes of an answer that is none of an error."""
        if self._status >= 400 or self._tap.lost or body.startswith(errors.STREAM_ERRORS):
            return False
        self._begin()
        return True

    def _keep_from_client(self) -> None:
        """The app's own words for an error, which the client gets in ours."""
        if self._status < 400:
            tap = self._tap
            self._sink.fail(tap.lost or tap.refused or errors.unexplained(500))

    def _begin(self) -> None:
        if not self._begun:
            self._begun = True
            self._sink.head(self._tap.head(self._status, self._content_type))


def _content_type(headers: Any) -> str:
    for name, value in headers:
        if name.lower() == b"content-type":
            content_type: str = value.decode().partition(";")[0]
            return content_type
    return ""
