"""Why a deployment cannot answer, and what helps: another one, or a shorter prompt."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack

import pytest

from penstock.v1 import inference_pb2 as inference
from penstock.v1 import routes_pb2 as routes
from tests.fakes.fake_control import deployment
from tests.fakes.fake_replica import hello
from tests.gateway_cpp.blackbox.conftest import Start
from tests.gateway_cpp.blackbox.fleets import (
    Fleet,
    failing,
    fleet,
    full,
    is_from,
    laddered,
    trimming,
)
from tests.gateway_cpp.blackbox.held import Held, asked, busy, every_dialect, slow
from tests.gateway_cpp.blackbox.raw_http import chat

STARTING = inference.REPLICA_STATE_STARTING
GONE = inference.REPLICA_STATE_DRAINING


async def queue_full(start: Start, stack: AsyncExitStack) -> Fleet:
    made, _ = await stack.enter_async_context(full(start))
    return made


async def queue_deadline(start: Start, stack: AsyncExitStack) -> Fleet:
    mini = laddered(max_queued=10, queue_deadline_ms=100)
    made, _ = await stack.enter_async_context(full(start, mini=mini))
    return made


async def wait_exceeded(start: Start, stack: AsyncExitStack) -> Fleet:
    mini = laddered(max_queued=10, wait_budget_ms=1)
    made = await fleet(start, mini=mini, scripts=(slow(0.1), hello, hello))
    assert (await made.system.ask(chat())).status == 200
    held = Held()
    made.replicas[0].script = held
    stack.callback(held.let_go, 1000)
    await stack.enter_async_context(busy(made.system))
    return made


async def memory_pressure(start: Start, stack: AsyncExitStack) -> Fleet:
    made = await fleet(start, mini=laddered(kv_pressure=0.5))
    (first, _, _) = made.replicas
    first.load.kv_usage = 0.75
    first.tell_load(first.load)

    async def is_told() -> bool:
        answer = await made.system.ask(chat())
        return answer.headers["x-penstock-backend"] == "big"

    while not await is_told():
        pass
    return made


async def no_ready_replica(start: Start, stack: AsyncExitStack) -> Fleet:
    return await fleet(start, mini=laddered(), state=GONE)


async def model_loading(start: Start, stack: AsyncExitStack) -> Fleet:
    return await fleet(start, mini=laddered(), state=STARTING)


async def scaled_to_zero(start: Start, stack: AsyncExitStack) -> Fleet:
    mini = laddered()
    mini.availability = routes.AVAILABILITY_SCALED_TO_ZERO
    return await fleet(start, mini=mini, state=GONE)


async def deployment_failed(start: Start, stack: AsyncExitStack) -> Fleet:
    mini = laddered()
    mini.availability = routes.AVAILABILITY_FAILED
    return await fleet(start, mini=mini, state=GONE)


async def budget(start: Start, stack: AsyncExitStack) -> Fleet:
    mini = laddered()
    mini.budget_used_up = True
    return await fleet(start, mini=mini)


async def upstream_failed(start: Start, stack: AsyncExitStack) -> Fleet:
    return await fleet(
        start, mini=laddered(), scripts=(failing(500, "internal_error"), hello, hello)
    )


@every_dialect
@pytest.mark.parametrize(
    "make",
    [
        *(queue_full, queue_deadline, wait_exceeded, memory_pressure, no_ready_replica),
        *(model_loading, scaled_to_zero, deployment_failed, budget, upstream_failed),
    ],
    ids=lambda make: make.__name__,
)
async def test_for_each_reason_another_deployment_answers(
    start: Start, make: Callable[[Start, AsyncExitStack], Awaitable[Fleet]], dialect: str
) -> None:
    async with AsyncExitStack() as stack:
        made = await make(start, stack)
        answer = await made.system.ask(asked(dialect))
        is_from(answer, "big", make.__name__)
        (call, *_) = reversed(made.replicas[1].calls)
        assert call.request.model == "mini"
        assert not call.request.trim


async def test_a_prompt_beyond_the_model_is_trimmed_and_nobody_else_is_asked(start: Start) -> None:
    made = await fleet(start, mini=laddered(), scripts=(trimming, hello, hello))
    for stream in (False, True):
        answer = await made.system.ask(chat(stream=stream))
        is_from(answer, "mini", "context_length_exceeded")
        assert answer.headers["x-penstock-trimmed"] == "messages=3, tokens=812"
    assert [call.request.trim for call in made.replicas[0].calls] == [False, True, False, True]
    assert not made.replicas[1].calls


async def test_a_prompt_beyond_the_deployments_limit_is_trimmed_before_it_is_sent(
    start: Start,
) -> None:
    made = await fleet(start, mini=laddered(max_prompt_tokens=20))
    for _ in range(32):  # by then it is known how many bytes a token has
        assert (await made.system.ask(chat())).status == 200
    made.replicas[0].script = trimming
    answer = await made.system.ask(chat(messages=[{"role": "user", "content": "word " * 1000}]))
    is_from(answer, "mini", "token_budget_exceeded")
    first, *further = made.replicas[0].calls[32:]
    assert not further
    assert first.request.trim
    assert first.request.max_prompt_tokens == 20


async def test_an_answer_that_is_to_be_too_long_is_nothing_that_trimming_mends(
    start: Start,
) -> None:
    made = await fleet(start, mini=laddered(max_completion_tokens=4))
    answer = await made.system.ask(chat(max_tokens=5))
    assert answer.status == 400
    assert answer.headers["x-penstock-drop-reason"] == "token_budget_exceeded"


async def test_a_deployment_that_trims_does_so_at_once(start: Start) -> None:
    mini = deployment()
    mini.trims = True
    made = await fleet(start, mini=mini, scripts=(trimming, hello, hello))
    answer = await made.system.ask(chat())
    is_from(answer, "mini", "context_length_exceeded")
    assert len(made.replicas[0].calls) == 1
    answer = await made.system.ask(chat("x-penstock-degrade: never\r\n"))
    assert answer.error["code"] == "context_length_exceeded"
