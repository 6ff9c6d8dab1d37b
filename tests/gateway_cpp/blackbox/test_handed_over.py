"""Streams whose replica is to go away, or is stuck: they go on at an equal one, and nothing is lost
or comes twice."""

from __future__ import annotations

import asyncio
import json
from contextlib import AsyncExitStack
from datetime import timedelta
from functools import partial
from itertools import pairwise
from types import TracebackType

from penstock.control.outside.clock import SystemClock
from penstock.v1 import inference_pb2 as inference
from penstock.v1 import routes_pb2 as routes
from tests.fakes.fake_control import deployment, route
from tests.fakes.fake_replica import FakeCall, FakeReplica, Script, delta
from tests.fakes.resumable import Answer, Step, answer, breaking, equal_load, failing, saying
from tests.fakes.waiting import until
from tests.gateway_cpp.blackbox.conftest import Start, System
from tests.gateway_cpp.blackbox.raw_http import RawClient, Response, chat

DRAINING = inference.REPLICA_STATE_DRAINING
STREAM = chat(stream=True)
CLOCK = SystemClock()


async def waits(call: FakeCall) -> None:
    """Says nothing more."""
    await call.cancelled.wait()


def leaving(replica: FakeReplica, *, after: timedelta = timedelta()) -> routes.ReplicaRoute:
    """It drains, and hands its streams over by then."""
    its = route(replica, state=DRAINING)
    its.hand_over_at_ms = int((CLOCK.now() + after).timestamp() * 1000)
    return its


class Fleet:
    """Replicas of which the first has all streams until it is to hand them over."""

    def __init__(self, system: System, limits: routes.Limits) -> None:
        self.system = system
        self.deployment = deployment(limits=limits)
        self.first, *self.others = system.replicas

    async def publish(self, *replicas: routes.ReplicaRoute) -> None:
        """In force when this returns."""
        version = await self.system.control.publish([self.deployment], replicas)
        await self.system.has_routes(version)

    async def hand_over(self, *, after: timedelta = timedelta()) -> None:
        """The first is to go away, and the others are there."""
        first = leaving(self.first, after=after)
        await self.publish(first, *(route(replica) for replica in self.others))

    async def has_usable(self, count: int) -> None:
        """Waits until the gateway would send to so many."""
        async with asyncio.timeout(20):
            while await self._usable() != count:
                await asyncio.sleep(0.01)

    async def _usable(self) -> int:
        page = await self.system.ask_status("/health/deep")
        entries = json.loads(page.body).get("deployments", [])  # none while none is usable
        return next((int(entry["serving"]) for entry in entries), 0)

    async def has_to_go_on(self, count: int, state: str) -> None:
        """Waits until so many answers wait for a place elsewhere."""
        async with asyncio.timeout(20):
            while await self.system.metric("penstock_gateway_to_go_on", state=state) != count:
                await asyncio.sleep(0.01)


async def fleet(
    start: Start, *scripts: Script, hashes: tuple[str, ...] = (), **limits: int
) -> Fleet:
    """Their loads are known to the gateway when this returns; only the first is in the routes."""
    told = routes.Limits(resume=True, resume_wait_ms=2000, max_queued=100, **limits)
    system = await start(scripts=scripts, deployment=deployment(limits=told))
    all_of_them = Fleet(system, told)
    for replica in system.replicas:
        replica.tell_load(inference.Load(state=inference.REPLICA_STATE_STARTING))
    await all_of_them.has_usable(0)
    for index, replica in enumerate(system.replicas):
        replica.tell_load(equal_load(hashes[index] if hashes else "same"))
    await all_of_them.has_usable(len(scripts))
    await all_of_them.publish(route(all_of_them.first))
    return all_of_them


def has_spoken(replica: FakeReplica) -> bool:
    """Whether a client has something of an answer from there."""
    return any(call.sent_bytes > 0 for call in replica.calls)


class Streams:
    """Clients of streams that begin at the first replica."""

    def __init__(self, system: System, count: int = 1) -> None:
        self._system = system
        self._count = count
        self._open = AsyncExitStack()
        self._group = asyncio.TaskGroup()

    async def __aenter__(self) -> list[asyncio.Task[Response]]:
        """Once some events of each have come."""
        await self._open.__aenter__()
        group = await self._open.enter_async_context(self._group)
        clients = [
            await self._open.enter_async_context(self._system.client()) for _ in range(self._count)
        ]
        tasks = [group.create_task(client.ask(STREAM)) for client in clients]
        await until(lambda: self._begun() == self._count, "all have begun")
        return tasks

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._open.__aexit__(kind, error, trace)

    def _begun(self) -> int:
        return sum(call.sent_bytes > 0 for call in self._system.replicas[0].calls)


def is_whole(response: Response, said: Answer) -> bool:
    """Whether the client has all of it, once."""
    return not response.cut_off and response.body == said.body


async def test_a_stream_that_is_handed_over_goes_on_where_it_was(start: Start) -> None:
    said = answer(8)
    there = await fleet(start, breaking(said, 4, waits), saying(said))
    async with Streams(there.system) as (task,):
        await there.hand_over()
        assert is_whole(await task, said)
    await until(there.first.calls[0].cancelled.is_set, "the first is told to stop")
    assert [call.request.resume.events for call in there.others[0].calls] == [4]
    assert await there.system.metric("penstock_gateway_resumes_total", outcome="resumed") == 1


async def test_it_moves_as_often_as_replicas_leave(start: Start) -> None:
    said = answer(8)
    there = await fleet(start, *(breaking(said, at, waits) for at in (2, 4, 6, 8)), saying(said))
    left: list[routes.ReplicaRoute] = []
    async with Streams(there.system) as (task,):
        for replica, other in pairwise(there.system.replicas):
            await until(partial(has_spoken, replica), "it goes on there")
            left.append(leaving(replica))
            await there.publish(*left, route(other))
        assert is_whole(await task, said)
    assert await there.system.metric("penstock_gateway_resumes_total", outcome="resumed") == 4


async def test_it_moves_back_to_where_it_broke_once_that_one_is_well(start: Start) -> None:
    said, dies = answer(8), asyncio.Event()

    async def killed_once(call: FakeCall) -> None:
        await dies.wait()
        await failing("engine_killed")(call)

    async def first(call: FakeCall) -> None:
        begins = not call.request.HasField("resume")
        await (breaking(said, 2, killed_once) if begins else saying(said))(call)

    there = await fleet(start, first, breaking(said, 4, waits))
    broken, other = there.system.replicas
    async with Streams(there.system) as (task,):
        await there.publish(route(broken), route(other))
        broken.tell_load(inference.Load(state=inference.REPLICA_STATE_STARTING))
        await there.has_usable(1)
        dies.set()
        await until(partial(has_spoken, other), "it goes on there")
        broken.tell_load(equal_load())
        await there.has_usable(2)
        await there.publish(route(broken), leaving(other))
        assert is_whole(await task, said)


async def test_its_time_is_the_clocks(start: Start) -> None:
    said = answer(8)
    there = await fleet(start, breaking(said, 4, waits), saying(said))
    async with Streams(there.system) as (task,):
        began = CLOCK.monotonic()
        await there.hand_over(after=timedelta(seconds=1.5))
        assert is_whole(await task, said)
        assert 1.2 < CLOCK.monotonic() - began < 10


async def test_without_an_equal_it_ends_where_it_is(start: Start) -> None:
    said = answer(8)
    may_end = asyncio.Event()

    async def later(call: FakeCall) -> None:
        await may_end.wait()
        for step in said.steps[4:]:
            await call.send(step.body, tokens=step.tokens, groups=step.groups)
        await call.finish()

    there = await fleet(start, breaking(said, 4, later), saying(said), hashes=("old", "new"))
    async with Streams(there.system) as (task,):
        await there.hand_over()
        await there.has_to_go_on(1, "running")
        page = json.loads((await there.system.ask_status("/health/deep")).body)
        assert page["deployments"][0]["to_go_on"] == {"broken": 0, "running": 1}
        may_end.set()
        assert is_whole(await task, said)
    assert not there.others[0].calls
    await there.has_to_go_on(0, "running")


async def test_without_an_equal_its_client_is_told_at_the_deadline_of_the_drain(
    start: Start,
) -> None:
    said = answer(8)
    deadline = asyncio.Event()

    async def ends(call: FakeCall) -> None:
        await deadline.wait()
        await failing("draining")(call)

    there = await fleet(start, breaking(said, 4, ends), saying(said), hashes=("old", "new"))
    async with Streams(there.system) as (task,):
        await there.hand_over()
        await there.has_to_go_on(1, "running")
        deadline.set()
        response = await task
    assert response.cut_off
    assert b'"error"' in response.body
    assert not there.others[0].calls


async def test_many_go_on_in_turns_and_each_is_cancelled_only_once_it_has_a_place(
    start: Start,
) -> None:
    said = answer(8)
    there = await fleet(start, breaking(said, 4, waits), saying(said))
    async with Streams(there.system, 12) as tasks:
        await there.hand_over()
        for task in asyncio.as_completed(tasks):
            assert is_whole(await task, said)
            cancelled = sum(call.cancelled.is_set() for call in there.first.calls)
            assert cancelled <= len(there.others[0].calls)
    assert len(there.others[0].calls) == 12


async def test_a_slow_client_misses_nothing(start: Start) -> None:
    long = [
        Step(delta("x" * 8000), (inference.TokenGroup(token_ids=[number]),))
        for number in range(1000)  # more than sockets hold
    ]
    said = Answer((*long, *answer(1).steps))
    there = await fleet(start, breaking(said, 900, waits), saying(said))
    async with RawClient(there.system.gateway.port, receive_buffer=4096) as client:
        await client.send(STREAM)
        assert (await client.head())[0] == 200
        body = await client.chunk() or b""
        await there.hand_over()
        while data := await client.chunk():
            body += data
    assert body == said.body


async def test_a_client_that_leaves_while_it_waits_takes_no_place(start: Start) -> None:
    said = answer(8)
    there = await fleet(start, breaking(said, 4, waits), saying(said), hashes=("old", "new"))
    async with there.system.client() as client:
        await client.send(STREAM)
        assert (await client.head())[0] == 200
        await there.hand_over()
        await there.has_to_go_on(1, "running")
        client.leave()
    await until(there.first.calls[0].cancelled.is_set, "the call is cancelled")
    await there.has_to_go_on(0, "running")
    there.others[0].tell_load(equal_load("old"))
    await there.has_usable(1)
    assert not there.others[0].calls


async def test_streams_of_a_replica_that_makes_no_tokens_go_on_elsewhere_all_at_once(
    start: Start,
) -> None:
    said = answer(8)
    there = await fleet(start, breaking(said, 4, waits), saying(said), progress_deadline_ms=1000)
    async with Streams(there.system, 12) as tasks:
        stuck = equal_load()
        stuck.running, stuck.tokens = 12, 48
        there.first.tell_load(stuck)
        await there.publish(*(route(replica) for replica in there.system.replicas))
        for task in tasks:
            assert is_whole(await task, said)
    assert await there.system.metric("penstock_gateway_resumes_total", reason="hang") == 12
