"""What it costs the gateway to keep what clients have of their streams, in instructions.

    python -m tests.gateway_cpp.blackbox.resume_cost [--before OTHER_GATEWAY] [--rounds 3]

All streams get their next event at once, in one frame as replicas send it, when all clients have
the one before: so each event is one write, whatever else the machine does, and what a stream of
many events costs beyond one of few is what its events cost. valgrind counts, as for shadows.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import statistics
import sys
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc

from penstock.v1 import inference_pb2 as v1
from penstock.v1 import inference_pb2_grpc as services
from penstock.v1 import routes_pb2 as routes
from tests.fakes.fake_control import FakeControl, deployment
from tests.fakes.fake_replica import DONE, delta, last_delta
from tests.fakes.fake_server import FakeServer
from tests.fakes.gateway_process import GatewayProcess, binary
from tests.fakes.waiting import until
from tests.gateway_cpp.blackbox.raw_http import chat
from tests.gateway_cpp.blackbox.shadow_cost import counted, under_valgrind

FEW, MANY = 20, 220  # events of a stream
STREAMS = (64, 1)  # at once: events in a frame
TOKEN = 151_643  # of three bytes, as most are
READY_S = 300.0  # all is slow here


class InStep(FakeServer, services.InferenceServicer):
    """Answers `streams` calls together, an event of each in a frame."""

    def __init__(self, streams: int) -> None:
        super().__init__()
        self.events = FEW
        self._streams = streams
        self._received = 0  # events by all clients, of this answer
        self._news = asyncio.Condition()

    def _serve_on(self, server: grpc.aio.Server) -> None:
        services.add_InferenceServicer_to_server(self, server)  # type: ignore[no-untyped-call]

    async def received(self, events: int) -> None:
        """A client has so many events more."""
        async with self._news:
            self._received += events
            self._news.notify_all()

    async def Session(
        self,
        request_iterator: AsyncIterator[v1.ClientFrame],
        context: grpc.aio.ServicerContext[v1.ClientFrame, v1.ServerFrame],
    ) -> None:
        """Begins when all calls are there; who watches the load is told it once."""
        starts: list[v1.Start] = []
        async with asyncio.TaskGroup() as group:
            async for frame in request_iterator:
                if frame.hello.watch_load:
                    load = v1.Load(state=v1.REPLICA_STATE_READY, max_running=256)
                    await context.write(v1.ServerFrame(load=load))
                starts.extend(frame.starts)
                if len(starts) == self._streams:
                    group.create_task(self._answer(starts, context))
                    starts = []

    async def _answer(self, starts: list[v1.Start], context: Any) -> None:
        self._received = 0
        for step in range(1, self.events + 1):
            events = [self._event(start, first=step == 1) for start in starts]
            await context.write(v1.ServerFrame(events=events))
            async with self._news:
                await self._news.wait_for(lambda: self._received >= step * self._streams)  # noqa: B023
        await context.write(v1.ServerFrame(events=[_end(start) for start in starts]))

    def _event(self, start: v1.Start, *, first: bool) -> v1.CallEvent:
        chunk = v1.Chunk(body=delta("word "), events=1, tokens=1)
        if start.request.token_groups:
            chunk.groups.add(token_ids=[TOKEN])
        event = v1.CallEvent(call_id=start.call_id, chunk=chunk)
        if first:
            head = v1.Head(status=200, content_type="text/event-stream", prompt_tokens=3)
            head.resumable = start.request.token_groups
            event.head.CopyFrom(head)
        return event


def _end(start: v1.Start) -> v1.CallEvent:
    chunk = v1.Chunk(body=last_delta() + DONE, events=2)
    finished = v1.Finished(finish_reasons=["stop"])
    return v1.CallEvent(call_id=start.call_id, chunk=chunk, finished=finished)


async def stream(port: int, replica: InStep) -> None:
    """One client's answer, to its end."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(chat(stream=True))
    read = b""
    while b"[DONE]" not in read:
        more = await reader.read(1 << 16)
        assert more, f"the stream broke off: {read!r}"
        read = read[-6:] + more
        await replica.received(read.count(b"word "))
        read = read[read.rfind(b"word ") + 5 :] if b"word " in read else read
    writer.close()
    await writer.wait_closed()


async def cost(gateway: Path, streams: int, limits: routes.Limits | None) -> float:
    """Instructions of one event."""
    async with contextlib.AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        control = await stack.enter_async_context(FakeControl())
        replica = await stack.enter_async_context(InStep(streams))
        to = routes.ReplicaRoute(
            id="r1",
            deployment="mini",
            address=replica.address,
            node="n1",
            capacity=256,
            state=v1.REPLICA_STATE_READY,
        )
        version = await control.publish([deployment(limits=limits)], [to])
        os.environ["PENSTOCK_GATEWAY"] = str(under_valgrind(gateway, folder))
        flags = ("--control", control.address, "--id", "gw-1", "--data-dir", str(folder))
        process = GatewayProcess(folder, *flags, "--threads", "1")
        await stack.enter_async_context(process)
        await process.start()
        await until(
            lambda: process.find_log("routes replaced", version=version),
            "it has routes",
            seconds=READY_S,
        )

        async def round_of(events: int) -> int:
            replica.events = events
            async with asyncio.TaskGroup() as group:
                for _ in range(streams):
                    group.create_task(stream(process.port, replica))
            return await asyncio.to_thread(counted, folder, process.pid)

        await round_of(MANY)
        few, many = await round_of(FEW), await round_of(MANY)
        return (many - few) / (streams * (MANY - FEW))


async def compare(before: Path | None, rounds: int) -> None:
    """Prints a table."""
    ours = binary()
    ways: dict[str, tuple[Path, routes.Limits | None]] = {
        "off": (ours, routes.Limits(resume=False)),
        "on": (ours, routes.Limits(resume=True)),
    }
    if before is not None:
        ways = {"before": (before, routes.Limits())} | ways
    for streams in STREAMS:
        found: dict[str, list[float]] = {title: [] for title in ways}
        for _ in range(rounds):
            for title, (gateway, limits) in ways.items():
                found[title].append(await cost(gateway, streams, limits))
        base = statistics.median(next(iter(found.values())))
        for title, costs in found.items():
            middle = statistics.median(costs)
            sys.stdout.write(
                f"{streams:3} events in a frame  {title:8} {middle:8,.0f} {middle / base:6.3f}  "
                f"{min(costs):,.0f} to {max(costs):,.0f}\n"
            )


def main() -> None:
    """As the command line says."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--before", type=Path, help="a gateway that knows no resume")
    parser.add_argument("--rounds", type=int, default=3)
    told = parser.parse_args()
    asyncio.run(compare(told.before, told.rounds))


if __name__ == "__main__":
    main()
