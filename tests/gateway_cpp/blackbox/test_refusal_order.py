"""Of several reasons to refuse a request its client is told the first, in the order of checks."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any

import pytest

from penstock.v1 import inference_pb2 as inference
from penstock.v1 import routes_pb2 as routes
from tests.fakes.fake_control import deployment, route, tenant
from tests.fakes.fake_replica import hello
from tests.gateway_cpp.blackbox.conftest import Start, System
from tests.gateway_cpp.blackbox.held import Held, asked, busy, narrow, slow
from tests.gateway_cpp.blackbox.raw_http import chat

GONE = inference.REPLICA_STATE_DRAINING
STARTING = inference.REPLICA_STATE_STARTING
READY = inference.REPLICA_STATE_READY


@dataclass(frozen=True, slots=True)
class Standing:
    """How things stand: the reason that is told, and what gives it and all that follow it."""

    reason: str
    key: str = "nobody"  # whose request it is
    full: bool = False  # the gateway serves as many as it may
    state: inference.ReplicaState = READY  # of the only replica, whose place is taken
    kv_usage: float = 0.9
    max_tokens: int = 5  # more than may be asked for
    max_queued: int = 0


TABLE = [
    Standing("gateway_full", "limited", full=True, state=GONE),
    Standing("rate_limited", "limited", state=GONE),
    Standing("quota", "spent", state=GONE),
    Standing("no_ready_replica", state=GONE),
    Standing("model_loading", state=STARTING),
    Standing("memory_pressure"),
    Standing("token_budget_exceeded", kv_usage=0),
    Standing("queue_full", kv_usage=0, max_tokens=4),
    Standing("wait_exceeded", kv_usage=0, max_tokens=4, max_queued=10),
]


def tenants(*, spent: bool) -> list[routes.Tenant]:
    """One that may have a single request under way, and one that may have any number."""
    both = {"quota_used_up": spent}
    return [
        tenant("limited", keys=["limited"], limits={"max_streams": 1} | both),
        tenant("spent", keys=["spent"], limits=both),
    ]


async def publish(system: System, standing: Standing, *, spent: bool) -> None:
    """`mini` within its limits, and `other`, which has a replica of its own."""
    first, second = system.replicas
    limited = narrow(
        standing.max_queued, wait_budget_ms=1, kv_pressure=0.5, max_completion_tokens=4
    )
    version = await system.control.publish(
        [limited, deployment("other")],
        [route(first, state=standing.state if spent else READY), route(second, of="other")],
        tenants=tenants(spent=spent),
    )
    await system.has_routes(version)


async def has_learnt_of_waits(system: System) -> None:
    """A call has ended, from which the gateway knows how long one takes."""
    system.replicas[0].script = slow(0.1)
    assert (await system.ask(chat())).status == 200


async def has_heard_of(system: System, kv_usage: float) -> None:
    """The gateway goes by so much KV in use; the replica is busy, and nobody may wait."""
    system.replicas[0].tell_load(
        inference.Load(state=READY, max_running=256, kv_usage=kv_usage, running=1, calls=1)
    )
    async with asyncio.timeout(20):
        while (await why(system)) != ("memory_pressure" if kv_usage else "queue_full"):
            pass


async def why(system: System, key: str = "nobody", **fields: object) -> str:
    """The reason that a request is refused for."""
    answer = await system.ask(chat(f"Authorization: Bearer {key}\r\n", **fields))
    return answer.headers["x-penstock-drop-reason"]


@pytest.mark.parametrize("standing", TABLE, ids=lambda standing: standing.reason)
async def test_of_several_reasons_the_first_is_told(start: Start, standing: Standing) -> None:
    held = Held()
    system = await start("--max-in-flight", "2", scripts=(hello, hello))
    await publish(system, Standing(""), spent=False)
    await has_learnt_of_waits(system)
    for replica in system.replicas:
        replica.script = held
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(busy(system, chat("Authorization: Bearer limited\r\n")))
        await has_heard_of(system, standing.kv_usage)
        await publish(system, standing, spent=True)
        if standing.full:
            await stack.enter_async_context(busy(system, chat(model="other")))
        assert await why(system, standing.key, max_tokens=standing.max_tokens) == standing.reason


@dataclass(frozen=True, slots=True)
class TooMuch:
    """A request for more tokens than its deployment gives."""

    dialect: str
    fields: dict[str, Any]
    param: str
    code: str = "token_budget_exceeded"
    limits: dict[str, Any] = field(default_factory=lambda: {"max_completion_tokens": 4})
    says: str = "it asks for 5 tokens, and max_completion_tokens is 4"


TOO_MUCH = {
    "tokens": TooMuch("chat", {"max_tokens": 5}, "max_tokens"),
    "tokens by their new name": TooMuch("chat", {"max_completion_tokens": 5}, "max_tokens"),
    "tokens of a response": TooMuch("responses", {"max_output_tokens": 5}, "max_output_tokens"),
    "choices": TooMuch(
        "chat",
        {"n": 3},
        "n",
        code="invalid_value",
        limits={"max_n": 2},
        says="it asks for 3 choices, and max_n is 2",
    ),
    "a prompt": TooMuch(
        "chat",
        {"user": "x" * 10_000},
        "messages",
        limits={"max_prompt_tokens": 100},
        says="max_prompt_tokens is 100",
    ),
}


@pytest.mark.parametrize("name", TOO_MUCH)
async def test_more_tokens_than_may_be_are_400_and_reach_no_replica(
    start: Start, name: str
) -> None:
    much = TOO_MUCH[name]
    system = await start(deployment=deployment(limits=routes.Limits(**much.limits)))
    for _ in range(32):  # then it is known how few tokens a prompt may have
        assert (await system.ask(chat(max_tokens=4, n=1))).status == 200
    answer = await system.ask(asked(much.dialect, **much.fields))
    assert answer.status == 400
    assert answer.headers["x-penstock-drop-reason"] == "token_budget_exceeded"
    assert answer.headers["x-should-retry"] == "false"
    assert "retry-after" not in answer.headers
    assert answer.error["code"] == much.code
    assert answer.error["param"] == much.param
    assert much.says in answer.error["message"]
    assert len(system.replicas[0].calls) == 32


async def test_a_replica_is_told_what_a_request_may_have(start: Start) -> None:
    limits = routes.Limits(max_prompt_tokens=100, max_completion_tokens=4)
    system = await start(deployment=deployment(limits=limits))
    assert (await system.ask(chat())).status == 200
    (call,) = system.replicas[0].calls
    assert call.request.max_prompt_tokens == 100
    assert call.request.max_completion_tokens == 4
