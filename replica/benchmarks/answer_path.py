"""What the replica adds to each chunk of an answer: `python replica/benchmarks/answer_path.py`.

A fake engine client makes a token for each of many streams at once, as vLLM's output handler does;
an ASGI app like vLLM's puts each into a server-sent event. The same app and client run twice:
alone, their bytes thrown away, and in the replica's whole answer path, from the tap on the engine
client to the gRPC session of a client in another process, which reads and throws away. The
difference of CPU time (all threads of this process, user and system) by the number of chunks is our
part.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import multiprocessing
import sys
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from functools import partial
from multiprocessing.synchronize import Event as ProcessEvent
from types import SimpleNamespace
from typing import Any

import grpc
from starlette.responses import StreamingResponse
from starlette.types import Message, Receive, Scope, Send

from penstock.replica import _server
from penstock.replica.calls.bridge import Bridge
from penstock.replica.calls.inbox import Inbox
from penstock.replica.engine import Sink
from penstock.replica.values import Call, EngineFacts
from penstock.replica.vllm.serving.answering import answer
from penstock.replica.vllm.serving.tap import CURRENT, CallTap
from penstock.v1 import inference_pb2

_EVENT = b'data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m",' + (
    b'"choices":[{"index":0,"delta":{"content":" word"},"logprobs":null,"finish_reason":null}]}\n\n'
)


class FakeEngineClient:
    """Every stream gets one output in each step; a step begins when all are back for the next."""

    def __init__(self, streams: int, steps: int) -> None:
        self._queues: list[asyncio.Queue[Any]] = []
        self._streams = streams
        self._steps = steps
        self._back = 0
        self._all_back = asyncio.Event()

    def generate(self) -> AsyncGenerator[Any, None]:
        """The outputs of one request; they pass the tap of the call they belong to, if any."""
        outputs = self._outputs()
        tap = CURRENT.get()
        return outputs if tap is None else _tapped(tap, outputs)

    async def run(self) -> None:
        """All the steps, once every stream is there."""
        for step in range(self._steps):
            await self._all_back.wait()
            self._all_back.clear()
            self._back = 0
            reason = "length" if step == self._steps - 1 else None
            for queue in self._queues:
                queue.put_nowait(_output(reason))

    async def _outputs(self) -> AsyncGenerator[Any, None]:
        queue: asyncio.Queue[Any] = asyncio.Queue()
        self._queues.append(queue)
        for _ in range(self._steps):
            self._back += 1
            if self._back == self._streams:
                self._all_back.set()
            yield await queue.get()


async def _tapped(tap: CallTap, outputs: AsyncGenerator[Any, None]) -> AsyncGenerator[Any, None]:
    first = tap.begin(1)
    async for output in outputs:
        tap.saw(first, output)
        yield output


def _output(reason: str | None) -> Any:
    part = SimpleNamespace(index=0, token_ids=[7], finish_reason=reason, stop_reason=None)
    return SimpleNamespace(
        prompt_token_ids=[1, 2, 3], num_cached_tokens=0, metrics=None, outputs=[part]
    )


class App:
    """Streams what the client generates, one event for each output."""

    def __init__(self, client: FakeEngineClient) -> None:
        self._client = client

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await receive()
        response = StreamingResponse(self._events(), media_type="text/event-stream")
        await response(scope, receive, send)

    async def _events(self) -> AsyncGenerator[bytes, None]:
        async for _ in self._client.generate():
            yield _EVENT


async def alone(streams: int, steps: int) -> float:
    """CPU seconds of the app by itself."""
    client = FakeEngineClient(streams, steps)
    app = App(client)
    began = time.process_time()
    async with asyncio.TaskGroup() as tasks:
        for _ in range(streams):
            tasks.create_task(app(_SCOPE, _receiver(), _thrown_away))
        await client.run()
    return time.process_time() - began


_SCOPE: Scope = {"type": "http", "asgi": {"version": "3.0", "spec_version": "2.3"}, "headers": []}


def _receiver() -> Callable[[], Awaitable[Message]]:
    messages = iter([{"type": "http.request", "body": b"{}", "more_body": False}])

    async def receive() -> Message:
        for message in messages:
            return message
        return await asyncio.get_running_loop().create_future()  # type: ignore[no-any-return]

    return receive


async def _thrown_away(_: Message) -> None:
    return


class AnsweringEngine:
    """As much of an engine as the bridge needs."""

    def __init__(self, app: App) -> None:
        self.answer: Callable[[Call, Sink], Any] = partial(answer, app)


async def in_replica(streams: int, steps: int, reader: Reader) -> float:
    """CPU seconds of the app in the replica's answer path."""
    client = FakeEngineClient(streams, steps)
    inbox = Inbox()
    server = _server.InferenceServer("127.0.0.1:0", inbox.native)
    inbox.open()
    try:
        async with asyncio.TaskGroup() as tasks:
            engine: Any = AnsweringEngine(App(client))
            Bridge(server, engine.answer, _FACTS, tasks).attach(inbox)
            load = inference_pb2.Load(state=inference_pb2.REPLICA_STATE_READY)
            server.set_load(load.SerializeToString())
            reader.read(server.address)
            began = time.process_time()
            await client.run()
            await asyncio.to_thread(reader.done.wait)
        return time.process_time() - began
    finally:
        inbox.close()
        await asyncio.to_thread(server.stop, 0)


_FACTS = EngineFacts("fake", "1", "1", 1, 1, "")


class Reader:
    """A process that opens a session for all calls, reads it to its end and throws it away."""

    def __init__(self, streams: int, *, groups: bool) -> None:
        context = multiprocessing.get_context("spawn")
        self.done: ProcessEvent = context.Event()
        self._addresses: Any = context.SimpleQueue()
        self._process = context.Process(
            target=_read_all, args=(streams, groups, self._addresses, self.done), daemon=True
        )
        self._process.start()

    def read(self, address: str) -> None:
        """Reads one session of the server there."""
        self.done.clear()
        self._addresses.put(address)

    def close(self) -> None:
        """Ends the process."""
        self._addresses.put("")
        self._process.join()


def _read_all(streams: int, groups: bool, addresses: Any, done: ProcessEvent) -> None:
    request = inference_pb2.CallRequest(
        path="/v1/chat/completions", body=b"{}", model="m", token_groups=groups
    )
    starts = [inference_pb2.Start(call_id=i + 1, request=request) for i in range(streams)]
    frame = inference_pb2.ClientFrame(starts=starts).SerializeToString()
    while address := addresses.get():
        with grpc.insecure_channel(address) as channel:
            session = channel.stream_stream("/penstock.v1.Inference/Session", None, None)
            for _ in session(iter([frame])):
                pass
        done.set()


def main() -> int:
    """Prints one JSON object: microseconds of CPU for each chunk."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--streams", type=int, default=128)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--groups", action="store_true", help="with the tokens of each chunk")
    args = parser.parse_args()
    chunks = args.streams * args.steps
    reader = Reader(args.streams, groups=args.groups)
    gc.disable()
    asyncio.run(in_replica(args.streams, 20, reader))
    bare, whole = [], []
    for _ in range(args.rounds):
        bare.append(asyncio.run(alone(args.streams, args.steps)) / chunks * 1e6)
        whole.append(asyncio.run(in_replica(args.streams, args.steps, reader)) / chunks * 1e6)
    reader.close()
    # The least of all rounds: what else the machine does only ever adds.
    report = {
        "streams": args.streams,
        "groups": args.groups,
        "app_alone_us": round(min(bare), 2),
        "in_replica_us": round(min(whole), 2),
        "ours_us": round(min(whole) - min(bare), 2),
    }
    sys.stdout.write(json.dumps(report) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
