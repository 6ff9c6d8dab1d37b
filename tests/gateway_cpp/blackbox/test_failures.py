"""Replicas that break, refuse, hang or vanish, and what a client sees of it."""

from __future__ import annotations

import asyncio
import json
import time

import openai
import pytest

from penstock.v1 import inference_pb2 as inference
from penstock.v1 import routes_pb2 as routes
from tests.fakes.fake_control import deployment, route
from tests.fakes.fake_replica import FakeCall, FakeReplica, delta, hang, hello, refuse
from tests.fakes.waiting import until
from tests.gateway_cpp.blackbox.conftest import Start, System
from tests.gateway_cpp.blackbox.raw_http import chat


async def one_event_then_wait(call: FakeCall) -> None:
    await call.send(delta("first"))
    await call.cancelled.wait()


def in_stream_error(data: bytes) -> dict[str, object]:
    """The error object of the last event, which must be whole."""
    assert data.endswith(b"\n\n"), data
    last = data.removesuffix(b"\n\n").split(b"\n\n")[-1]
    assert last.startswith(b"data: "), last
    parsed = json.loads(last.removeprefix(b"data: "))
    assert parsed.keys() == {"error"}, parsed
    error: dict[str, object] = parsed["error"]
    assert error.keys() == {"message", "type", "param", "code"}
    return error


async def test_a_replica_that_dies_mid_stream_ends_it_with_an_error_and_no_done(
    start: Start,
) -> None:
    system = await start(scripts=(one_event_then_wait,))
    async with system.client() as client:
        await client.send(chat(stream=True))
        assert (await client.head())[0] == 200
        assert await client.chunk() == delta("first")
        await system.replicas[0].die()
        rest = b""
        while data := await client.chunk():
            rest += data
        assert in_stream_error(rest)["type"] == "server_error"
        assert b"[DONE]" not in rest
        assert await client.closed()


async def test_the_openai_sdk_raises_on_a_stream_that_broke(start: Start) -> None:
    system = await start(scripts=(one_event_then_wait,))
    async with openai.AsyncOpenAI(
        base_url=system.gateway.base_url + "/v1", api_key="none", max_retries=0
    ) as client:
        stream = await client.chat.completions.create(
            model="mini", messages=[{"role": "user", "content": "hi"}], stream=True
        )
        chunk = await anext(stream)
        assert chunk.choices[0].delta.content == "first"
        await system.replicas[0].die()
        with pytest.raises(openai.APIError):
            await anext(stream)


async def test_an_error_that_the_replica_reports_mid_stream_is_passed_on(start: Start) -> None:
    seen = asyncio.Event()

    async def fails(call: FakeCall) -> None:
        await call.send(delta("first"))
        await seen.wait()
        await refuse(500, "engine_error")(call)

    system = await start(scripts=(fails,))
    async with system.client() as client:
        await client.send(chat(stream=True))
        assert (await client.head())[0] == 200
        assert await client.chunk() == delta("first")
        seen.set()
        rest = b""
        while data := await client.chunk():
            rest += data
        assert in_stream_error(rest)["code"] == "engine_error"
        assert b"[DONE]" not in rest
        assert await client.closed()


async def test_a_unary_answer_that_breaks_half_way_is_an_error_and_not_half_an_answer(
    start: Start,
) -> None:
    async def half(call: FakeCall) -> None:
        await call.send(b'{"half":')
        await call.cancelled.wait()

    system = await start(scripts=(half,))
    async with system.client() as client:
        await client.send(chat())
        await until(lambda: system.replicas[0].calls, "the call arrives")
        await until(lambda: system.replicas[0].calls[0].sent_bytes, "half is sent")
        await system.replicas[0].die()
        answer = await client.response()
        assert answer.status == 502
        assert answer.error["code"] == "upstream_error"


async def test_a_replica_that_is_away_is_passed_over(start: Start) -> None:
    system = await start(scripts=(hello, hello))
    await system.replicas[0].die()
    for _ in range(10):
        answer = await system.ask(chat(stream=True))
        assert answer.status == 200
        assert answer.body.endswith(b"data: [DONE]\n\n")
    assert len(system.replicas[1].calls) == 10


async def test_a_failure_before_the_first_byte_tries_another_replica(start: Start) -> None:
    system = await start(scripts=(refuse(503, "engine_overloaded", retry=True), hello))
    for _ in range(40):  # which is tried first is chance
        answer = await system.ask(chat())
        assert answer.status == 200
    refusals = len(system.replicas[0].calls)
    assert refusals > 0
    metrics = (await system.ask_status("/metrics")).body.decode()
    assert f'penstock_gateway_failovers_total{{deployment="mini"}} {refusals}\n' in metrics


async def test_a_death_before_the_first_byte_tries_another_replica(start: Start) -> None:
    in_turn = deployment(selection_policy="round_robin")
    system = await start(scripts=(hang, hello), deployment=in_turn)
    async with system.client() as client:
        await client.send(chat())
        await client.send(chat())
        await until(lambda: system.replicas[0].calls, "the first replica has a call")
        await system.replicas[0].die()
        assert (await client.response()).status == 200
        assert (await client.response()).status == 200


async def test_when_every_replica_fails_the_last_ones_error_is_told(start: Start) -> None:
    failing = refuse(503, "engine_overloaded", retry=True)
    system = await start(scripts=(failing, failing))
    answer = await system.ask(chat(stream=True))
    assert answer.status == 503
    assert answer.error["code"] == "engine_overloaded"
    assert answer.headers["x-should-retry"] == "true"
    assert sum(len(replica.calls) for replica in system.replicas) == 2


@pytest.mark.parametrize("replicas", [1, 2, 5])
async def test_when_every_replica_is_away_the_first_answer_is_503_already(
    start: Start, replicas: int
) -> None:
    system = await start(scripts=(hello,) * replicas)
    for replica in system.replicas:
        await replica.die()
    for _ in range(3):
        answer = await system.ask(chat())
        assert answer.status == 503
        assert answer.error["type"] == "server_error"
        assert answer.headers["x-penstock-drop-reason"] == "no_ready_replica"
        assert answer.headers["x-should-retry"] == "true"
        assert 1 <= int(answer.headers["retry-after"]) <= 60


async def test_a_replica_that_comes_back_is_used_again(start: Start) -> None:
    system = await start(scripts=(hello,))
    await system.replicas[0].die()
    assert (await system.ask(chat())).status == 503
    async with FakeReplica("r1") as reborn:
        await system.publish(route(reborn))
        assert (await system.ask(chat())).status == 200


async def test_a_clients_error_is_passed_on_and_never_tried_elsewhere(start: Start) -> None:
    bad = refuse(400, "context_length_exceeded")
    in_turn = deployment(selection_policy="round_robin")
    system = await start("--threads", "1", scripts=(bad, bad), deployment=in_turn)
    for _ in range(50):
        answer = await system.ask(chat())
        assert answer.status == 400
        assert answer.error["code"] == "context_length_exceeded"
        assert answer.headers["x-should-retry"] == "false"
    assert sum(len(replica.calls) for replica in system.replicas) == 50
    # Nor does it speak against a replica: both still get requests.
    for replica in system.replicas:
        assert len(replica.calls) == 25
        replica.script = hello
    assert (await system.ask(chat())).status == 200


@pytest.mark.parametrize(
    ("state", "code"),
    [
        (inference.REPLICA_STATE_STARTING, "model_loading"),
        (inference.REPLICA_STATE_DRAINING, "overloaded"),
    ],
)
async def test_without_a_ready_replica_it_is_503_with_a_time_to_come_back(
    system: System, state: inference.ReplicaState, code: str
) -> None:
    await system.publish(route(system.replicas[0], state=state))
    answer = await system.ask(chat())
    assert answer.status == 503
    assert answer.error["code"] == code
    assert 1 <= int(answer.headers["retry-after"]) <= 60
    assert answer.headers["x-should-retry"] == "true"
    assert answer.headers["x-penstock-drop-reason"] in ("model_loading", "no_ready_replica")
    assert not system.replicas[0].calls


async def test_a_replica_that_leaves_the_snapshot_finishes_what_it_has(start: Start) -> None:
    system = await start(scripts=(one_event_then_wait, hello))
    first = system.replicas[0]
    async with system.client() as client:
        while not first.calls:
            await client.send(chat(stream=True))
            await client.head()
            chunk = await client.chunk()
            if chunk != delta("first"):
                while await client.chunk():
                    pass
        await system.publish(route(system.replicas[1]))
        first.calls[0].cancelled.set()  # lets the script go on to its end
        await first.calls[0].send(delta("second"))
        assert await client.chunk() == delta("second")
    for _ in range(4):
        assert (await system.ask(chat())).status == 200
    assert len(first.calls) == 1


async def test_requests_spread_over_replicas(start: Start) -> None:
    in_turn = deployment(selection_policy="round_robin")
    system = await start("--threads", "1", scripts=(hello, hello, hello), deployment=in_turn)
    for _ in range(30):
        assert (await system.ask(chat())).status == 200
    assert [len(replica.calls) for replica in system.replicas] == [10, 10, 10]


async def test_the_less_loaded_replica_is_chosen(start: Start) -> None:
    system = await start("--threads", "1", scripts=(hang, hang))
    async with system.client() as one, system.client() as other:
        await one.send(chat())
        await until(lambda: sum(len(r.calls) for r in system.replicas) == 1, "a call arrives")
        await other.send(chat())
        await until(lambda: all(r.calls for r in system.replicas), "the idle one has the other")


async def test_where_nobody_may_wait_what_no_replica_may_take_is_refused(start: Start) -> None:
    limited = deployment(limits=routes.Limits(max_ongoing=1))
    system = await start(scripts=(hang,), deployment=limited)
    async with system.client() as busy:
        await busy.send(chat())
        await until(lambda: system.replicas[0].calls, "the call arrives")
        answer = await system.ask(chat())
        assert answer.status == 429
        assert answer.error["type"] == "rate_limit_error"
        assert answer.headers["x-penstock-drop-reason"] == "queue_full"
        assert "retry-after" in answer.headers


async def test_no_first_event_in_time_is_504_and_cancels(start: Start) -> None:
    system = await start("--first-event-deadline-ms", "300", scripts=(hang,))
    answer = await system.ask(chat())
    assert answer.status == 504
    assert answer.error["code"] == "deadline_exceeded"
    assert answer.error["type"] == "timeout_error"
    call = system.replicas[0].calls[0]
    await until(call.cancelled.is_set, "the call is cancelled")


async def test_a_deployments_own_deadline_goes_first(start: Start) -> None:
    strict = deployment(limits=routes.Limits(first_event_deadline_ms=300))
    system = await start(scripts=(hang,), deployment=strict)
    began = time.monotonic()
    assert (await system.ask(chat(stream=True))).status == 504
    assert time.monotonic() - began < 10
