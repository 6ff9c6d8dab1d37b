"""Requests whose deployment has a router program beside the gateway."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from penstock.v1 import microserving_pb2 as v1
from penstock.v1 import router_pb2 as router
from penstock.v1 import routes_pb2 as routes
from tests.fakes.fake_control import deployment, route
from tests.fakes.fake_replica import FakeCall, hang
from tests.fakes.fake_router import TOKEN, Asked, FakeRouter, Program
from tests.fakes.moving_engine import PROMPT, MovingEngine
from tests.fakes.spoken import SPOKEN
from tests.fakes.waiting import until
from tests.gateway_cpp.blackbox.conftest import Start, System
from tests.gateway_cpp.blackbox.raw_http import Response, chat, request

USES = ("prep_recv", "remote_send")
MOVED = PROMPT // 16 * 16


@dataclass(slots=True)
class Led:
    """A system with a program beside its gateway: p1 prefills, d1 and d2 decode."""

    system: System
    router: FakeRouter
    engines: list[MovingEngine]
    folder: Path

    async def switch_to(self, digest: str, deadline_ms: int) -> None:
        """The deployment has that program."""
        mini = deployment(selection_policy="program")
        mini.program.CopyFrom(
            routes.Program(
                digest=digest, name="a test's", args=b"{}", uses=USES, deadline_ms=deadline_ms
            )
        )
        shown = []
        for replica, role in zip(
            self.system.replicas, ("prefill", "decode", "decode"), strict=True
        ):
            shown.append(route(replica))
            shown[-1].role = role
            shown[-1].microserving = True
            shown[-1].template_digest = "digest-1"
        await self.system.has_routes(await self.system.control.publish([mini], shown))

    async def found(self) -> None:
        """Waits until the gateway has found the program's process."""
        await self.system.reports(
            lambda report: any(
                d.HasField("program") and not d.program.unavailable for d in report.deployments
            ),
            "the program is asked",
        )

    async def ask(self, headers: str = "") -> Response:
        """One chat request."""
        return await self.system.ask(chat(headers=headers))

    async def counts(self, outcome: str) -> float:
        """Asks that came to that."""
        return await self.system.metric("penstock_gateway_program_asks_total", outcome=outcome)


Lead = Callable[[Program], Awaitable[Led]]


@pytest.fixture
async def lead(start: Start, tmp_path: Path) -> AsyncIterator[Lead]:
    """Starts a system that a program leads."""
    async with AsyncExitStack() as stack:

        async def start_led(program: Program) -> Led:
            folder = tmp_path / "programs"
            engines = [MovingEngine() for _ in range(3)]
            fake = await stack.enter_async_context(FakeRouter(program))
            fake.announce(folder, "d1")
            system = await start("--programs-dir", str(folder), scripts=tuple(engines))
            led = Led(system, fake, engines, folder)
            await led.switch_to("d1", deadline_ms=2000)
            await led.found()
            return led

        yield start_led


def named(asked: Asked, role: str) -> list[str]:
    """The engines of that role."""
    return [engine.replica_id for engine in asked.ask.engines if engine.role == role]


async def split(asked: Asked) -> None:
    """Has the prompt computed by the first engine that prefills, and generated elsewhere."""
    there, here = named(asked, "decode")[-1], named(asked, "prefill")[0]
    prepared = await asked.engine(router.ENGINE_VERB_PREP_RECV, there, seq_id="a", end=2**32 - 1)
    if not prepared.error:
        prepared = await asked.engine(
            router.ENGINE_VERB_REMOTE_SEND, here, seq_id="a", begin=0, end=prepared.end
        )
    if prepared.error:
        return await asked.decide(there)
    await asked.decide(there, seq_id="a", begin=MOVED)


async def never(asked: Asked) -> None:
    """Decides nothing."""
    await asked.cancelled.wait()


async def test_a_program_says_where_requests_go(lead: Lead) -> None:
    async def to_prefill(asked: Asked) -> None:
        await asked.decide(named(asked, "prefill")[0])

    led = await lead(to_prefill)
    answers = [await led.ask("x-penstock-category: code\r\n") for _ in range(8)]
    assert {a.headers["x-penstock-replica"] for a in answers} == {"r1"}
    assert {a.status for a in answers} == {200}
    assert {a.ask.category for a in led.router.asked} == {"code"}
    assert set(led.router.authorizations) == {f"Bearer {TOKEN}"}
    assert led.router.streams <= 2  # one for each I/O thread
    assert await led.counts("decided") == 8
    report = await led.system.reports(
        lambda r: any(d.program.decided == 8 for d in r.deployments), "all are told"
    )
    assert [d.program.digest for d in report.deployments] == ["d1"]


@pytest.mark.parametrize("category", ["x" * 65, "caf\xe9"])
async def test_a_category_is_short_and_printable(lead: Lead, category: str) -> None:
    led = await lead(never)
    answer = await led.ask(f"x-penstock-category: {category}\r\n")
    assert answer.status == 400
    assert b"x-penstock-category" in answer.body
    assert not led.router.asked


async def test_kv_is_moved_and_the_call_that_generates_says_so(lead: Lead) -> None:
    led = await lead(split)
    answer = await led.ask()
    assert answer.status == 200
    assert answer.headers["x-penstock-replica"] == "r3"
    assert answer.headers["x-penstock-kv-moved"] == str(MOVED)
    generating = led.system.replicas[2].calls[-1].request
    assert generating.kv.seq_id.endswith("/a")
    assert generating.kv.begin == MOVED
    assert not led.engines[2].leases
    assert await led.system.metric("penstock_gateway_program_moved_tokens_total") == MOVED
    line = await until(lambda: led.system.gateway.find_log("request settled"), "it is logged")
    assert line["program"] == "decided"
    assert f"remote_send@r1={MOVED}/" in line["legs"]


@pytest.mark.parametrize("path", SPOKEN)
@pytest.mark.parametrize("streams", [False, True])
async def test_a_program_leads_each_dialect(lead: Lead, path: str, *, streams: bool) -> None:
    spoken = SPOKEN[path]

    async def speaks(call: FakeCall) -> None:
        stream = spoken.begin + spoken.text("Hello") + spoken.end
        await call.send(stream if streams else spoken.unary)
        await call.finish()

    led = await lead(split)
    led.engines[2].script = speaks
    body = json.dumps(spoken.body | {"stream": streams}).encode()
    answer = await led.system.ask(request(path=path, body=body))
    assert answer.status == 200
    assert b"Hello" in answer.body if streams else answer.body == spoken.unary
    assert answer.headers["x-penstock-kv-moved"] == str(MOVED)
    (asked,) = led.router.asked
    assert asked.ask.path == path
    (tokenized,) = (
        v1.TokenizeRequest.FromString(call.request.body).call
        for call in led.system.replicas[2].calls
        if call.request.path.endswith("/Tokenize")
    )
    assert (tokenized.path, tokenized.body) == (path, body)


async def test_what_was_moved_before_a_program_failed_was_not_cached_before(lead: Lead) -> None:
    async def moves_and_raises(asked: Asked) -> None:
        here = named(asked, "prefill")[0]
        for there in named(asked, "decode"):
            to = {"seq_id": there, "end": MOVED}
            await asked.engine(router.ENGINE_VERB_PREP_RECV, there, **to)
            await asked.engine(router.ENGINE_VERB_REMOTE_SEND, here, begin=0, **to)
        await asked.decide(error="raised", detail="ValueError: no")

    led = await lead(moves_and_raises)
    answer = await led.ask()
    assert await led.counts("raised") == 1
    assert answer.headers["x-penstock-kv-moved"] == str(MOVED)
    await until(lambda: not any(engine.leases for engine in led.engines), "leases end")


async def test_what_engines_refuse_is_computed_plainly(lead: Lead) -> None:
    led = await lead(split)
    led.engines[2].cause = "fingerprint"
    answer = await led.ask()
    assert answer.status == 200
    assert "x-penstock-kv-moved" not in answer.headers


async def test_a_program_that_fails_costs_its_time_and_after_three_times_nothing(
    lead: Lead,
) -> None:
    led = await lead(never)
    await led.switch_to("d1", deadline_ms=20)
    for _ in range(5):
        assert (await led.ask()).status == 200
    assert await led.counts("slow") == 3
    assert len(led.router.asked) == 3
    report = await led.system.reports(
        lambda r: any(d.program.unavailable for d in r.deployments), "it is left alone"
    )
    told = report.deployments[0].program
    assert [(f.reason, f.count) for f in told.failures] == [("slow", 3)]
    page = await led.system.ask_status("/health/deep")
    assert b'"asked":false' in page.body


async def test_a_program_that_raises_or_talks_nonsense_is_not_followed(lead: Lead) -> None:
    async def raises(asked: Asked) -> None:
        await asked.decide(error="raised", detail="ValueError: no")

    async def invents(asked: Asked) -> None:
        await asked.decide("r99")

    led = await lead(raises)
    assert (await led.ask()).status == 200
    led.router.program = invents
    assert (await led.ask()).status == 200
    assert await led.counts("raised") == 1
    assert await led.counts("nonsense") == 1


async def test_a_process_that_dies_is_known_at_once_and_asked_again_when_it_is_back(
    lead: Lead,
) -> None:
    led = await lead(never)
    await led.switch_to("d1", deadline_ms=60_000)
    async with asyncio.TaskGroup() as group:
        asking = group.create_task(led.ask())
        await until(lambda: led.router.asked, "it was asked")
        await led.router.die()
    assert asking.result().status == 200
    assert await led.counts("dead") == 1
    led.router.program = split
    await led.router.start_again()
    seen = len(led.router.asked)
    while len(led.router.asked) == seen:
        assert (await led.ask()).status == 200


async def test_another_program_is_asked_as_soon_as_its_process_runs_it(lead: Lead) -> None:
    led = await lead(split)
    await led.switch_to("d2", deadline_ms=2000)
    assert (await led.ask()).status == 200
    assert not led.router.asked
    led.router.announce(led.folder, "d2")
    await led.found()
    assert (await led.ask()).status == 200
    assert led.router.asked[0].ask.program_digest == "d2"


async def test_a_client_that_leaves_ends_every_leg(lead: Lead) -> None:
    led = await lead(split)
    led.engines[0].may_send.clear()
    client = led.system.connect()
    client.sendall(chat())
    await led.engines[0].sends.wait()
    assert led.engines[2].leases
    client.close()
    await until(lambda: led.engines[0].cancelled_sends == 1, "the sender stops")
    await until(lambda: not led.engines[2].leases, "the receiver is released")


@pytest.mark.parametrize("dies", [0, 2])
async def test_a_request_whose_engine_dies_under_a_leg_is_computed_plainly(
    lead: Lead, dies: int
) -> None:
    led = await lead(split)
    led.engines[0].may_send.clear()
    async with asyncio.TaskGroup() as group:
        asking = group.create_task(led.ask())
        await led.engines[0].sends.wait()
        await led.system.replicas[dies].die()
    answer = asking.result()
    assert answer.status == 200
    assert "x-penstock-kv-moved" not in answer.headers
    if dies == 0:
        await until(lambda: not led.engines[2].leases, "the receiver is released")
    else:
        await until(lambda: led.engines[0].cancelled_sends == 1, "the sender stops")


async def test_a_decision_without_a_place_leaves_the_request_where_it_has_one(lead: Lead) -> None:
    async def to_last(asked: Asked) -> None:
        await asked.decide(named(asked, "decode")[-1])

    led = await lead(to_last)
    led.engines[2].script = hang
    full = deployment(selection_policy="program", limits=routes.Limits(max_ongoing=1, max_queued=9))
    full.program.digest = "d1"
    full.program.deadline_ms = 2000
    shown = [route(r) for r in led.system.replicas[1:]]
    for each in shown:
        each.role = "decode"
    await led.system.has_routes(await led.system.control.publish([full], shown))
    with led.system.connect() as hanging:
        hanging.sendall(chat())
        await until(lambda: led.system.replicas[2].calls, "one has the only place")
        answer = await led.ask()
    assert answer.headers["x-penstock-replica"] == "r2"
    assert await led.counts("no_place") == 1
