"""A replica whose answers the test writes: the Inference service over real gRPC, in this process.

What it answers is a script, a coroutine that gets each call. It keeps to the contract (whole
events, credit, one frame at a time, a Cancelled for each cancel); the rest is up to the script.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import grpc

from penstock.v1 import common_pb2 as common
from penstock.v1 import inference_pb2 as v1
from penstock.v1 import inference_pb2_grpc as services
from tests.fakes.fake_server import FakeServer

DONE = b"data: [DONE]\n\n"


def authorization_of(context: grpc.aio.ServicerContext[Any, Any]) -> str:
    """What the caller says to prove who it is; empty: nothing."""
    return str(dict(context.invocation_metadata() or ()).get("authorization", ""))


def event(body: object) -> bytes:
    """One server-sent event with a JSON body."""
    return b"data: " + json.dumps(body, separators=(",", ":")).encode() + b"\n\n"


def delta(text: str) -> bytes:
    """One chat chunk with `text`, as OpenAI clients read it."""
    choice = {"index": 0, "delta": {"role": "assistant", "content": text}, "finish_reason": None}
    return event(chat_object("chat.completion.chunk", choice))


def last_delta() -> bytes:
    """The chunk that says why a chat answer ended."""
    choice = {"index": 0, "delta": {}, "finish_reason": "stop"}
    return event(chat_object("chat.completion.chunk", choice))


def chat_object(kind: str, choice: dict[str, Any]) -> dict[str, Any]:
    """An answer of the chat API with one choice."""
    return {"id": "chatcmpl-1", "object": kind, "created": 1, "model": "mini", "choices": [choice]}


def unary_chat(text: str) -> bytes:
    """A whole chat answer."""
    message = {"role": "assistant", "content": text}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    answer = chat_object("chat.completion", choice)
    answer["usage"] = {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}
    return json.dumps(answer).encode()


@dataclass(slots=True)
class FakeCall:
    """One call as a script sees it."""

    call_id: int
    request: v1.CallRequest
    write: Callable[[v1.CallEvent], Awaitable[None]]
    credit: float
    cancelled: asyncio.Event = field(default_factory=asyncio.Event)
    sent_bytes: int = 0
    usage: common.Usage = field(
        default_factory=lambda: common.Usage(prompt_tokens=3, completion_tokens=2)
    )
    facts: v1.Head = field(default_factory=v1.Head)  # that the head says besides
    ended: bool = False
    _started: bool = False
    _credited: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def json(self) -> dict[str, Any]:
        """The client's body."""
        parsed: dict[str, Any] = json.loads(self.request.body)
        return parsed

    @property
    def streamed(self) -> bool:
        """Whether the client asked for events."""
        return bool(self.json.get("stream"))

    async def send(
        self,
        body: bytes,
        *,
        events: int = 1,
        tokens: int = 0,
        groups: Iterable[v1.TokenGroup] = (),
    ) -> None:
        """Sends answer bytes, and the tokens that they show, once there is credit for them."""
        while self.credit <= 0:
            self._credited.clear()
            await self._credited.wait()
        self.credit -= len(body)
        self.sent_bytes += len(body)
        chunk = v1.Chunk(body=body, events=events, tokens=tokens, groups=groups)
        await self.write(v1.CallEvent(call_id=self.call_id, head=self._head(), chunk=chunk))

    async def finish(self, *finish_reasons: str) -> None:
        """Ends the answer well: by itself, unless told otherwise of each choice."""
        done = v1.Finished(
            usage=self.usage,
            finish_reasons=finish_reasons or ["stop"],
            backend="fake",
            adapter=self.request.adapter,
        )
        await self._end(v1.CallEvent(head=self._head(), finished=done))

    async def fail(self, error: common.ErrorDetail) -> None:
        """Ends the answer with an error."""
        usage = self.usage if self._started else None
        await self._end(v1.CallEvent(failed=v1.Failed(error=error, usage=usage)))

    async def tell_cancelled(self) -> None:
        """Answers a cancel, unless the call was over by then."""
        if not self.ended:
            await self._end(v1.CallEvent(cancelled=v1.Cancelled(usage=self.usage)))

    def add_credit(self, amount: int) -> None:
        """The client took `amount` bytes."""
        self.credit += amount
        self._credited.set()

    async def _end(self, end: v1.CallEvent) -> None:
        end.call_id = self.call_id
        await self.write(end)
        self.ended = True

    def _head(self) -> v1.Head | None:
        if self._started:
            return None
        self._started = True
        kind = "text/event-stream" if self.streamed else "application/json"
        head = v1.Head(
            status=200,
            content_type=kind,
            prompt_tokens=3,
            backend_version="fake 1.0",
            model_version="weights-1",
        )
        head.MergeFrom(self.facts)
        return head


Script = Callable[[FakeCall], Awaitable[None]]


async def hello(call: FakeCall) -> None:
    """Says hello, in events or at once."""
    if call.streamed:
        await call.send(delta("Hel"))
        await call.send(delta("lo") + last_delta() + DONE, events=3)
    else:
        await call.send(unary_chat("Hello"))
    await call.finish()


async def hang(call: FakeCall) -> None:
    """Never answers."""
    await call.cancelled.wait()


def refuse(status: int, code: str, *, retry: bool = False) -> Script:
    """A script that fails each call before its first byte."""
    fault = common.FAULT_UPSTREAM if retry else common.FAULT_CLIENT
    error = common.ErrorDetail(
        status=status,
        type="server_error" if status >= 500 else "invalid_request_error",
        code=code,
        message=f"the replica said {code}",
        fault=fault,
        retry=common.RETRY_BEFORE_FIRST_TOKEN if retry else common.RETRY_NEVER,
    )

    async def script(call: FakeCall) -> None:
        await call.fail(error)

    return script


class FakeReplica(FakeServer, services.InferenceServicer):
    """Serves from `async with` on; `script` may be changed at any time."""

    def __init__(self, replica_id: str = "r1", script: Script = hello) -> None:
        super().__init__()
        self.replica_id = replica_id
        self.script = script
        self.calls: list[FakeCall] = []
        self.sessions = 0
        self.hellos: list[v1.Hello] = []  # of each session that said one
        self.authorizations: list[str] = []  # of each session, load watch and health check
        self.health_checks: list[v1.HealthRequest] = []
        self.health: v1.HealthReply | None = None
        self.load = v1.Load(state=v1.REPLICA_STATE_READY, max_running=256, adapter_slots=4)
        self._news_of_load: list[asyncio.Event] = []  # one for each session that watches

    def _serve_on(self, server: grpc.aio.Server) -> None:
        services.add_InferenceServicer_to_server(self, server)  # type: ignore[no-untyped-call]

    def tell_load(self, load: v1.Load) -> None:
        """Tells a new load to every session that asked for it."""
        self.load = load
        for news in self._news_of_load:
            news.set()

    async def Session(
        self,
        request_iterator: AsyncIterator[v1.ClientFrame],
        context: grpc.aio.ServicerContext[v1.ClientFrame, v1.ServerFrame],
    ) -> None:
        """One session: each Start runs the script in a task of its own."""
        self.sessions += 1
        self.authorizations.append(authorization_of(context))
        # Only one task writes: a script may be cancelled at any time, a write may not.
        frames: asyncio.Queue[v1.ServerFrame] = asyncio.Queue(maxsize=1)

        async def write_frames() -> None:
            while True:
                await context.write(await frames.get())

        async def write(event: v1.CallEvent) -> None:
            await frames.put(v1.ServerFrame(events=[event]))

        calls: dict[int, FakeCall] = {}
        tasks: dict[int, asyncio.Task[None]] = {}
        async with asyncio.TaskGroup() as group:
            background = [group.create_task(write_frames())]
            async for frame in request_iterator:
                if frame.HasField("hello"):
                    self.hellos.append(frame.hello)
                if frame.hello.watch_load:
                    background.append(group.create_task(self._tell_loads(frames)))
                for start in frame.starts:
                    credit = start.initial_credit_bytes or float("inf")
                    call = FakeCall(start.call_id, start.request, write, credit)
                    calls[start.call_id] = call
                    self.calls.append(call)
                    tasks[start.call_id] = group.create_task(self._run(call))
                for grant in frame.credits:
                    if grant.call_id in calls:
                        calls[grant.call_id].add_credit(grant.bytes)
                for call_id in frame.cancels:
                    if call_id in calls:
                        calls[call_id].cancelled.set()
                        tasks[call_id].cancel()
            for task in background:
                task.cancel()

    async def _tell_loads(self, frames: asyncio.Queue[v1.ServerFrame]) -> None:
        news = asyncio.Event()
        self._news_of_load.append(news)
        while True:
            news.clear()
            await frames.put(v1.ServerFrame(load=self.load))
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(news.wait(), 0.5)

    async def _run(self, call: FakeCall) -> None:
        try:
            await self.script(call)
        except asyncio.CancelledError:
            if not call.cancelled.is_set():
                raise
            await call.tell_cancelled()

    async def Call(
        self,
        request: v1.CallRequest,
        context: grpc.aio.ServicerContext[v1.CallRequest, v1.CallEvent],
    ) -> None:
        """One call, without a session and without credit."""
        self.authorizations.append(authorization_of(context))
        call = FakeCall(0, request, context.write, float("inf"))
        self.calls.append(call)
        await self._run(call)

    async def WatchLoad(
        self,
        request: v1.WatchLoadRequest,
        context: grpc.aio.ServicerContext[v1.WatchLoadRequest, v1.Load],
    ) -> None:
        """The load, each half second."""
        self.authorizations.append(authorization_of(context))
        while True:
            await context.write(self.load)
            await asyncio.sleep(0.5)

    async def Health(
        self,
        request: v1.HealthRequest,
        context: grpc.aio.ServicerContext[v1.HealthRequest, v1.HealthReply],
    ) -> v1.HealthReply:
        """As the test says; well unless it says more."""
        self.authorizations.append(authorization_of(context))
        self.health_checks.append(request)
        if self.health is not None:
            return self.health
        return v1.HealthReply(ok=True, state=self.load.state)
