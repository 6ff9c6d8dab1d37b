"""Who is served, who waits and who is refused: reasons, headers, bodies, and their order."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field

import pytest

from penstock.v1 import inference_pb2 as inference
from penstock.v1 import routes_pb2 as routes
from tests.fakes.fake_control import deployment, route, tenant
from tests.fakes.fake_replica import FakeCall
from tests.fakes.spoken import SPOKEN
from tests.gateway_cpp.blackbox.conftest import Start, System
from tests.gateway_cpp.blackbox.held import (
    DIALECTS,
    Held,
    asked,
    busy,
    every_dialect,
    narrow,
    slow,
)
from tests.gateway_cpp.blackbox.raw_http import CHAT, Response, chat, request

KEY = "Authorization: Bearer sesame\r\n"
SCALED, FAILED = routes.AVAILABILITY_SCALED_TO_ZERO, routes.AVAILABILITY_FAILED
LOADING = routes.AVAILABILITY_LOADING


@dataclass(frozen=True, slots=True)
class No:
    """A reason to refuse, how it comes about, and what the client is told."""

    reason: str
    status: int
    code: str
    type: str
    retry: bool = True
    route: routes.DeploymentRoute = field(default_factory=deployment)
    limits: dict[str, int] = field(default_factory=dict)  # of the tenant
    state: inference.ReplicaState = inference.REPLICA_STATE_READY
    busy: bool = False  # a first request is with the replica
    learnt: bool = False  # it is known how long calls take
    kv_usage: float = 0
    fields: dict[str, object] = field(default_factory=dict)
    flags: tuple[str, ...] = ()


LIMITED = "rate_limit_error"
GONE = inference.REPLICA_STATE_DRAINING
STARTING = inference.REPLICA_STATE_STARTING
NOES = [
    No(
        "gateway_full", 503, "overloaded", "server_error", busy=True, flags=("--max-in-flight", "1")
    ),
    No("rate_limited", 429, "rate_limit_exceeded", LIMITED, limits={"max_streams": 1}, busy=True),
    No("quota", 429, "insufficient_quota", LIMITED, retry=False, limits={"quota_used_up": True}),
    No(
        *("scaled_to_zero", 503, "scaled_to_zero", "server_error"),
        retry=False,
        route=deployment(availability=SCALED),
        state=GONE,
    ),
    No(
        *("deployment_failed", 503, "deployment_failed", "server_error"),
        retry=False,
        route=deployment(availability=FAILED),
        state=GONE,
    ),
    No("no_ready_replica", 503, "overloaded", "server_error", state=GONE),
    No("model_loading", 503, "model_loading", "server_error", state=STARTING),
    No(
        *("memory_pressure", 429, "overloaded", LIMITED),
        route=narrow(kv_pressure=0.5),
        kv_usage=0.75,
    ),
    No(
        *("token_budget_exceeded", 400, "token_budget_exceeded", "invalid_request_error"),
        retry=False,
        route=narrow(max_completion_tokens=4),
        fields={"max_tokens": 5, "max_output_tokens": 5},
    ),
    No("queue_full", 429, "overloaded", LIMITED, route=narrow(max_queued=0), busy=True),
    No(
        *("wait_exceeded", 429, "overloaded", LIMITED),
        route=narrow(wait_budget_ms=1),
        busy=True,
        learnt=True,
    ),
    No(
        *("queue_deadline", 408, "queue_deadline", "timeout_error"),
        route=narrow(queue_deadline_ms=50),
        busy=True,
    ),
]


async def begin(start: Start, no: No) -> tuple[System, Held]:
    """A system in which the next request comes to that end, but for a busy replica."""
    held = Held()
    own = tenant(keys=["sesame"], limits=no.limits)
    system = await start(*no.flags, scripts=(held,), deployment=no.route, tenants=[own])
    if no.learnt:
        system.replicas[0].script = slow(0.1)
        assert (await system.ask(chat(KEY))).status == 200
        system.replicas[0].script = held
    if no.kv_usage:
        (replica,) = system.replicas
        replica.load.kv_usage = no.kv_usage
        replica.tell_load(replica.load)
    if no.state != inference.REPLICA_STATE_READY:
        version = await system.control.publish(
            [no.route], [route(system.replicas[0], state=no.state)], tenants=[own]
        )
        await system.has_routes(version)
    return system, held


async def refusal(system: System, data: bytes) -> Response:
    """The first answer that is none: what a replica or the head told is heard some time later."""
    async with asyncio.timeout(20):
        while (answer := await system.ask(data)).status == 200:
            pass
    return answer


def is_refused(answer: Response, no: No, dialect: str) -> None:
    """Status, headers and body say so in the client's dialect."""
    assert answer.status == no.status, answer
    assert answer.headers["x-penstock-drop-reason"] == no.reason
    assert answer.headers["x-should-retry"] == ("true" if no.retry else "false")
    if no.retry:
        assert 1 <= int(answer.headers["retry-after"]) <= 60
        assert 1000 <= int(answer.headers["retry-after-ms"]) <= 60_000
    else:
        assert "retry-after" not in answer.headers
        assert "retry-after-ms" not in answer.headers
    if dialect == "messages":
        told = json.loads(answer.body)
        assert told.keys() == {"type", "error", "request_id"}
        assert told["type"] == "error"
        assert told["error"].keys() == {"type", "message"}
        return
    assert answer.error["code"] == no.code
    assert answer.error["type"] == no.type


async def refused(start: Start, no: No, dialect: str = "chat") -> tuple[System, Response]:
    """A request that has come to that end."""
    system, held = await begin(start, no)
    data = asked(dialect, KEY, **no.fields)
    if not no.busy:
        held.let_go(1000)
        return system, await refusal(system, data)
    async with busy(system, chat(KEY)):
        return system, await system.ask(data)


every_refusal = pytest.mark.parametrize("no", NOES, ids=lambda no: no.reason)


@every_dialect
@every_refusal
async def test_every_refusal_says_why_and_when_to_come_back(
    start: Start, no: No, dialect: str
) -> None:
    system, answer = await refused(start, no, dialect)
    is_refused(answer, no, dialect)
    assert await system.drops(no.reason) >= 1


def in_metadata(body: bytes) -> dict[str, object]:
    """The object of the one event that has it, just before the last."""
    events = body.rstrip(b"\n").split(b"\n\n")
    told = [event for event in events if b'"penstock":' in event]
    assert told == [events[-2]]
    chunk = json.loads(told[0].removeprefix(b"data: "))
    assert chunk["choices"] == []
    facts: dict[str, object] = chunk["penstock"]
    return facts


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/completions"])
async def test_a_stream_that_asks_for_metadata_ends_with_it(start: Start, path: str) -> None:
    system = await start()
    body = json.dumps(CHAT | {"prompt": "hi", "stream": True}).encode()
    data = request(path=path, body=body, headers="x-penstock-metadata: include\r\n")
    answer = await system.ask(data)
    assert not answer.cut_off
    assert answer.body.endswith(b"data: [DONE]\n\n")
    facts = in_metadata(answer.body)
    assert facts["trace_id"] == answer.headers["x-penstock-trace-id"]
    assert facts["replica"] == "r1"
    assert (facts["prompt_tokens"], facts["completion_tokens"]) == (3, 2)
    assert facts["attempts"] == 1


@pytest.mark.parametrize(
    ("header", "named"),
    [
        ("x-penstock-metadata: included", "x-penstock-metadata is `included`"),
        ("x-penstock-priority: urgent", "x-penstock-priority is `urgent`"),
        ("x-penstock-degrade: always", "x-penstock-degrade is `always`. It is never, allow"),
    ],
)
async def test_an_own_header_with_an_unknown_value_is_refused_by_name(
    start: Start, header: str, named: str
) -> None:
    system = await start()
    answer = await system.ask(request(body=json.dumps(CHAT).encode(), headers=f"{header}\r\n"))
    assert answer.status == 400
    assert named in json.loads(answer.body)["error"]["message"]


@pytest.mark.parametrize(
    ("dialect", "header", "stream"),
    [
        ("responses", "x-penstock-metadata: include\r\n", True),
        ("messages", "x-penstock-metadata: include\r\n", True),
        ("chat", "x-penstock-metadata: include\r\n", False),
        ("chat", "", True),
    ],
)
async def test_nobody_else_is_told_metadata(
    start: Start, dialect: str, header: str, stream: bool
) -> None:
    spoken = SPOKEN[DIALECTS[dialect][0]]

    async def says(call: FakeCall) -> None:
        await call.send(spoken.begin + spoken.end if stream else spoken.unary)
        await call.finish()

    system = await start(scripts=(says,))
    answer = await system.ask(asked(dialect, header, stream=stream))
    assert answer.status == 200
    assert not answer.cut_off
    assert b"penstock" not in answer.body
