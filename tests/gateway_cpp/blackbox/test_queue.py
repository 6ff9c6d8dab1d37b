"""Requests that wait for a replica: their order, what they are told, and how their wait ends."""

from __future__ import annotations

import asyncio
import json

import pytest

from penstock.v1 import inference_pb2 as inference
from penstock.v1 import routes_pb2 as routes
from tests.fakes.fake_control import route, tenant
from tests.fakes.fake_replica import FakeCall, hello
from tests.fakes.waiting import until
from tests.gateway_cpp.blackbox.conftest import Start
from tests.gateway_cpp.blackbox.held import Held, asked, busy, every_dialect, narrow, waiting
from tests.gateway_cpp.blackbox.raw_http import chat

KEY = "Authorization: Bearer sesame\r\n"
GONE = inference.REPLICA_STATE_DRAINING


async def test_those_who_wait_go_by_priority_and_then_in_the_order_they_came(
    start: Start,
) -> None:
    high = tenant(keys=["sesame"], priority=routes.PRIORITY_CLASS_HIGH)
    held = Held()
    system = await start(scripts=(held,), deployment=narrow(), tenants=[high])

    def ranked(name: str, priority: str) -> bytes:
        return chat(f"{KEY}x-penstock-priority: {priority}\r\n", user=name)

    async with (
        busy(system),
        waiting(
            system,
            ranked("first", "normal"),
            ranked("second", "normal"),
            ranked("high", "high"),
        ) as clients,
    ):
        held.let_go(4)
        for client in clients:
            assert (await client.response()).status == 200
    calls = system.replicas[0].calls[1:]
    assert [call.json["user"] for call in calls] == ["high", "first", "second"]
    assert [call.request.priority for call in calls] == [-1, 0, 0]


async def test_a_class_above_the_tenants_own_is_not_granted(start: Start) -> None:
    system = await start(tenants=[tenant(keys=["sesame"], priority=routes.PRIORITY_CLASS_LOW)])
    assert (await system.ask(chat(KEY + "x-penstock-priority: high\r\n"))).status == 200
    assert system.replicas[0].calls[0].request.priority == 1


async def test_tenants_that_wait_take_turns(start: Start) -> None:
    both = [tenant("many", keys=["many"]), tenant("few", keys=["few"])]
    held = Held()
    system = await start(scripts=(held,), deployment=narrow(), tenants=both)

    def of(name: str) -> bytes:
        return chat(f"Authorization: Bearer {name}\r\n", user=name)

    waits = [of("many")] * 4 + [of("few")] * 2
    async with busy(system, of("many")), waiting(system, *waits) as clients:
        held.let_go(7)
        for client in clients:
            assert (await client.response()).status == 200
    order = [call.json["user"] for call in system.replicas[0].calls[1:]]
    assert order.index("few") <= 1
    assert "few" in order[2:4]


async def test_a_client_that_leaves_the_queue_frees_its_place_at_once(start: Start) -> None:
    held = Held()
    system = await start(scripts=(held,), deployment=narrow(max_queued=1))
    async with busy(system):
        async with waiting(system, chat()) as (client,):
            assert (await system.ask(chat())).status == 429
            client.leave()
            await system.has_queued(0)
        assert await system.drops("client_gone") == 1
        async with waiting(system, chat(user="next")) as (client,):
            held.let_go(2)
            assert (await client.response()).status == 200
    assert [call.json.get("user") for call in system.replicas[0].calls] == [None, "next"]


async def test_a_stream_that_waits_opens_early_and_is_told_the_rest_as_comments(
    start: Start,
) -> None:
    held = Held()
    system = await start("--heartbeat-ms", "50", scripts=(held,), deployment=narrow())
    async with busy(system), system.client() as client:
        await client.send(chat(stream=True))
        status, headers = await client.head()
        assert status == 200
        assert headers["content-type"] == "text/event-stream"
        assert "x-penstock-replica" not in headers
        assert await client.chunk() == b": ping\n\n"
        held.let_go(2)
        rest = b""
        while data := await client.chunk():
            rest += data
    comments = [line for line in rest.splitlines() if line.startswith(b": x-penstock-")]
    names = [line.split(b":")[1].strip().decode() for line in comments]
    assert b": x-penstock-replica: r1" in comments
    assert len(names) == len(set(names))
    assert {"x-penstock-queue-ms", "x-penstock-estimated-wait-ms"} <= set(names)
    assert not set(names) & headers.keys()
    assert rest.endswith(b"data: [DONE]\n\n")


LATE = narrow(queue_deadline_ms=200)


@every_dialect
async def test_a_late_refusal_comes_in_the_stream_with_a_time_to_come_back(
    start: Start, dialect: str
) -> None:
    system = await start("--heartbeat-ms", "50", scripts=(Held(),), deployment=LATE)
    async with busy(system), system.client() as client:
        await client.send(asked(dialect, stream=True))
        assert (await client.head())[0] == 200
        rest = b""
        while data := await client.chunk():
            rest += data
        assert data is None  # it breaks off: an end would look like success
        assert await client.closed()
    event = rest.rstrip(b"\n").split(b"\n\n")[-1]
    told = json.loads(event.partition(b"data: ")[2])
    error = told["response"]["error"] if dialect == "responses" else told["error"]
    assert "no replica of `mini` had room in time" in error["message"]
    assert 1000 <= error["retry_after_ms"] <= 60_000
    assert await system.drops("queue_deadline") == 1


@pytest.mark.parametrize("version", ["HTTP/1.0", "HTTP/1.1"])
async def test_a_late_refusal_to_who_reads_until_the_end_is_a_reset(
    start: Start, version: str
) -> None:
    system = await start("--heartbeat-ms", "50", scripts=(Held(),), deployment=LATE)
    data = chat("Connection: close\r\n", stream=True).replace(b"HTTP/1.1", version.encode(), 1)

    def read() -> tuple[bytes, bool]:
        seen = b""
        with system.connect() as link:
            link.sendall(data)
            try:
                while part := link.recv(65536):
                    seen += part
            except ConnectionResetError:
                return seen, True
        return seen, False

    async with busy(system):
        seen, reset = await asyncio.to_thread(read)
    assert b"retry_after_ms" in seen
    chunked = b"transfer-encoding: chunked" in seen.lower()
    assert reset or (chunked and not seen.endswith(b"0\r\n\r\n"))


async def test_those_who_wait_are_served_by_a_replica_that_comes(start: Start) -> None:
    held = Held()
    system = await start(scripts=(held, hello), deployment=narrow())
    first, second = system.replicas
    version = await system.control.publish([narrow()], [route(first)])
    await system.has_routes(version)
    async with busy(system), waiting(system, chat(), chat()) as clients:
        version = await system.control.publish([narrow()], [route(first), route(second)])
        for client in clients:
            assert (await client.response()).status == 200
        assert len(second.calls) == 2


async def test_those_who_wait_stay_when_a_replica_drains_and_go_to_the_next(
    start: Start,
) -> None:
    held = Held()
    system = await start(scripts=(held, hello), deployment=narrow())
    first, second = system.replicas
    await system.has_routes(await system.control.publish([narrow()], [route(first)]))
    async with busy(system), waiting(system, chat(), chat()) as clients:
        draining = route(first, state=GONE)
        await system.has_routes(await system.control.publish([narrow()], [draining]))
        await system.has_queued(2)
        await system.control.publish([narrow()], [draining, route(second)])
        for client in clients:
            assert (await client.response()).status == 200
        assert len(second.calls) == 2


async def test_the_death_of_the_only_replica_leaves_nobody_waiting(start: Start) -> None:
    system = await start(scripts=(Held(),), deployment=narrow(queue_deadline_ms=4000))
    async with busy(system) as client, waiting(system, chat(), chat(stream=True)) as clients:
        await system.replicas[0].die()
        for waited in (client, *clients):
            answer = await waited.response()
            assert answer.status in (408, 502, 503)
            assert answer.headers["x-should-retry"] == "true"
    await system.has_queued(0)


async def test_a_deployment_that_is_deleted_leaves_nobody_waiting(start: Start) -> None:
    system = await start(scripts=(Held(),), deployment=narrow())
    async with busy(system), waiting(system, chat(), chat(stream=True)) as clients:
        await system.control.publish([], [])
        for client in clients:
            answer = await client.response()
            assert answer.status == 404
            assert answer.error["code"] == "model_not_found"
    await system.has_queued(0)


async def test_the_estimate_of_a_wait_is_told_with_the_answer(start: Start) -> None:
    held = Held()
    system = await start(scripts=(held,), deployment=narrow())
    held.let_go(3)
    for _ in range(3):
        answer = await system.ask(chat())
        assert answer.headers["x-penstock-estimated-wait-ms"] == "0"
    async with busy(system) as first, waiting(system, chat()) as (second,):
        held.let_go(2)
        assert (await first.response()).headers["x-penstock-queue-ms"] == "0"
        answer = await second.response()
        assert answer.headers["x-penstock-estimated-wait-ms"].isdigit()
        assert int(answer.headers["x-penstock-queue-ms"]) > 0


async def test_a_cancelled_call_keeps_its_place_until_the_replica_has_stopped(
    start: Start,
) -> None:
    stopped = asyncio.Event()

    async def stops_late(call: FakeCall) -> None:
        try:
            await call.cancelled.wait()
        except asyncio.CancelledError:
            await stopped.wait()
            raise

    system = await start(scripts=(stops_late,), deployment=narrow())
    (replica,) = system.replicas
    async with busy(system) as first, waiting(system, chat(user="next")) as (second,):
        first.leave()
        await until(replica.calls[0].cancelled.is_set, "the call is cancelled")
        await system.reports(lambda _: True, "a report later")
        assert len(replica.calls) == 1
        replica.script = hello
        stopped.set()
        assert (await second.response()).status == 200


async def test_those_who_still_wait_when_a_drain_ends_are_told_to_try_again(start: Start) -> None:
    held = Held()
    system = await start("--drain-ms", "1000", scripts=(held,), deployment=narrow())
    async with busy(system) as first, waiting(system, chat(), chat()) as (second, third):
        system.gateway.terminate()
        held.let_go()
        assert (await first.response()).status == 200
        assert (await second.response()).status == 503  # a replica has it
        answer = await third.response()
        assert answer.status == 503
        assert answer.error["code"] == "draining"
        assert answer.headers["x-penstock-drop-reason"] == "draining"
        assert answer.headers["x-should-retry"] == "true"
        assert answer.headers["retry-after"] == "1"
    await system.gateway.exit_code()
