"""One call over an ASGI app: bytes, ends, deadlines, leaving. The app here is a fake one."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from penstock.replica.calls.answers import events_of
from penstock.replica.values import Call, Chunk, Death, Event, Failed, Finished, Head
from penstock.replica.vllm.failures import errors
from penstock.replica.vllm.serving.answering import answer
from penstock.replica.vllm.serving.asgi import Message
from penstock.replica.vllm.serving.tap import CURRENT, CallTap

Send = Callable[[Message], Awaitable[None]]
Receive = Callable[[], Awaitable[Message]]

EVENT = b'data: {"id":"1"}\n\n'


class FakeApp:
    """Reads the body, runs `script` with the tap and a way to send, notes when the client left."""

    def __init__(
        self, script: Callable[[CallTap, Send], Awaitable[None]], status: int = 200
    ) -> None:
        self.left = False
        self.body = b""
        self.scope: Any = None
        self._script = script
        self._status = status

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        self.scope = scope
        self.body = (await receive())["body"]
        headers = [(b"content-type", b"text/event-stream; charset=utf-8")]
        await send({"type": "http.response.start", "status": self._status, "headers": headers})
        tap = CURRENT.get()
        assert tap is not None
        async with asyncio.TaskGroup() as tasks:
            script = tasks.create_task(self._run(tap, send))
            listener = tasks.create_task(self._listen(receive, script))
            await asyncio.wait((script,))
            listener.cancel()

    async def _run(self, tap: CallTap, send: Send) -> None:
        await self._script(tap, send)

    async def _listen(self, receive: Receive, script: asyncio.Task[None]) -> None:
        assert (await receive())["type"] == "http.disconnect"
        self.left = True
        script.cancel()


async def say(send: Send, body: bytes = EVENT) -> None:
    await send({"type": "http.response.body", "body": body, "more_body": True})


def produce(tap: CallTap, ids: list[int], finish: str | None = None) -> None:
    """One output of the engine, as the engine client would feed it."""
    part = SimpleNamespace(
        index=0, token_ids=ids, finish_reason=finish, stop_reason=None, logprobs=None
    )
    tap.saw(
        0,
        SimpleNamespace(prompt_token_ids=[1, 2], num_cached_tokens=0, metrics=None, outputs=[part]),
    )


def a_call(**more: Any) -> Call:
    return Call("req_1", "/v1/chat/completions", b'{"x": 1}', "mini", **more)


async def said_by(app: FakeApp, call: Call | None = None) -> list[Event]:
    return [event async for event in events_of(partial(answer, app), call or a_call())]


async def test_the_body_goes_in_and_the_bytes_come_out_as_they_are() -> None:
    async def script(tap: CallTap, send: Send) -> None:
        tap.begin(1)
        produce(tap, [7])
        await say(send)
        produce(tap, [8], "stop")
        await say(send, b"data: [DONE]\n\n")

    app = FakeApp(script)
    head, *chunks, last = await said_by(app, a_call(token_groups=True))
    assert isinstance(head, Head)
    assert replace(head, created=0) == Head(200, "text/event-stream", prompt_tokens=2)
    assert b"".join(c.body for c in chunks if isinstance(c, Chunk)) == EVENT + b"data: [DONE]\n\n"
    groups = [g.token_ids for c in chunks if isinstance(c, Chunk) for g in c.groups]
    assert groups == [(7,), (8,)]
    assert last == Finished(2, 2, finish_reasons=("stop",))
    assert app.body == b'{"x": 1}'
    assert (b"x-request-id", b"req_1") in app.scope["headers"]


async def test_a_stream_that_ends_before_the_engine_was_done_is_a_failure() -> None:
    async def script(tap: CallTap, send: Send) -> None:
        tap.begin(1)
        produce(tap, [7])
        await say(send)

    *_, last = await said_by(FakeApp(script))
    assert isinstance(last, Failed)
    assert (last.code, last.retryable) == ("engine_stopped", True)


async def test_vllms_own_error_event_and_its_done_are_never_passed_on() -> None:
    async def script(tap: CallTap, send: Send) -> None:
        tap.begin(1)
        produce(tap, [7])
        await say(send)
        tap.lost = errors.engine_dead(Death("killed"), aboard=True)
        await say(send, b'data: {"error": {"message": "x", "code": 500}}\n\n')
        await say(send, b"data: [DONE]\n\n")

    *said, last = await said_by(FakeApp(script))
    assert b"".join(c.body for c in said if isinstance(c, Chunk)) == EVENT
    assert isinstance(last, Failed)
    assert (last.status, last.code, last.retryable) == (503, "engine_dead", False)


async def test_a_death_before_the_first_byte_is_a_failure_alone() -> None:
    async def script(tap: CallTap, send: Send) -> None:
        tap.lost = errors.engine_dead(Death("killed"), aboard=True)
        await say(send, b'{"error": {"message": "x", "code": 500}}')

    assert [type(e) for e in await said_by(FakeApp(script, 500))] == [Failed]


async def test_an_error_status_becomes_the_failure_that_was_kept() -> None:
    async def script(tap: CallTap, send: Send) -> None:
        tap.refused = errors.client_error(400, "invalid_value", "bad thing", "top_p")
        await say(send, b"whatever")

    (failed,) = await said_by(FakeApp(script, 400))
    assert isinstance(failed, Failed)
    assert (failed.message, failed.param, failed.fault) == ("bad thing", "top_p", "client")


async def test_an_error_status_of_which_nothing_was_kept_keeps_its_status() -> None:
    async def script(tap: CallTap, send: Send) -> None:
        await say(send, b"whatever")

    (failed,) = await said_by(FakeApp(script, 413))
    assert isinstance(failed, Failed)
    assert (failed.status, failed.fault) == (413, "client")


async def test_an_error_in_a_stream_keeps_its_own_status() -> None:
    async def script(tap: CallTap, send: Send) -> None:
        await say(send, EVENT)
        tap.refused = errors.client_error(422, "invalid_value", "bad thing")
        await say(send, b'data: {"error": {}}\n\n')

    *_, failed = await said_by(FakeApp(script))
    assert isinstance(failed, Failed)
    assert (failed.status, failed.message) == (422, "bad thing")


async def test_an_app_that_breaks_is_a_failure() -> None:
    async def script(tap: CallTap, send: Send) -> None:
        raise KeyError("oops")

    (failed,) = await said_by(FakeApp(script))
    assert isinstance(failed, Failed)
    assert failed.status == 500


async def test_a_request_that_memory_does_not_suffice_for_may_be_tried_elsewhere() -> None:
    async def script(tap: CallTap, send: Send) -> None:
        raise MemoryError

    (failed,) = await said_by(FakeApp(script))
    assert isinstance(failed, Failed)
    assert (failed.status, failed.code, failed.retryable) == (503, "oom_contained", True)


async def test_a_passed_deadline_ends_the_call_and_tells_the_app_to_stop() -> None:
    async def script(tap: CallTap, send: Send) -> None:
        await asyncio.Event().wait()

    app = FakeApp(script)
    (failed,) = await said_by(app, a_call(deadline_ms=20))
    assert isinstance(failed, Failed)
    assert (failed.status, failed.code) == (504, "deadline_exceeded")
    assert app.left


async def _endless(tap: CallTap, send: Send) -> None:
    tap.begin(1)
    while True:
        produce(tap, [7])
        await say(send)
        await asyncio.sleep(0)


async def test_closing_the_iterator_tells_the_app_to_stop() -> None:
    app = FakeApp(_endless)
    async with aclosing(events_of(partial(answer, app), a_call())) as events:
        assert isinstance(await anext(events), Head)
        assert isinstance(await anext(events), Chunk)
    assert app.left


async def test_cancelling_the_consumer_tells_the_app_to_stop_before_it_says_a_word() -> None:
    reached = asyncio.Event()

    async def script(tap: CallTap, send: Send) -> None:
        reached.set()
        await asyncio.Event().wait()

    app = FakeApp(script)
    async with asyncio.TaskGroup() as tasks:
        consumer = tasks.create_task(said_by(app))
        await reached.wait()
        consumer.cancel()
    assert consumer.cancelled()
    assert app.left


async def test_a_consumer_that_stops_reading_holds_the_app_back() -> None:
    said = 0

    async def script(tap: CallTap, send: Send) -> None:
        nonlocal said
        tap.begin(1)
        while True:
            produce(tap, [7])
            await say(send)
            said += 1

    async with aclosing(events_of(partial(answer, FakeApp(script)), a_call())) as events:
        await anext(events)
        for _ in range(100):
            await asyncio.sleep(0)
        assert said <= 32


@pytest.mark.parametrize("status", [200, 400])
async def test_an_empty_body_still_comes_to_an_end(status: int) -> None:
    async def script(tap: CallTap, send: Send) -> None:
        return

    last = (await said_by(FakeApp(script, status)))[-1]
    assert isinstance(last, Finished if status == 200 else Failed)
