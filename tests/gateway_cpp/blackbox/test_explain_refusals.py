"""Why requests were refused: each reason is kept in the words that its client and the log were
told, with what it was decided by. `record_of` holds the words."""

from __future__ import annotations

import hashlib
import re
from typing import Any

from penstock.v1 import suspects_pb2 as suspects
from tests.fakes.fake_control import deployment, route
from tests.fakes.fake_replica import hang
from tests.fakes.waiting import until
from tests.gateway_cpp.blackbox.conftest import Start, System
from tests.gateway_cpp.blackbox.fleets import engine_dies
from tests.gateway_cpp.blackbox.held import Held, busy, narrow, waiting
from tests.gateway_cpp.blackbox.raw_http import Response, chat
from tests.gateway_cpp.blackbox.recorded import record_by, record_of
from tests.gateway_cpp.blackbox.test_admission import No, every_refusal, refused
from tests.gateway_cpp.blackbox.test_wait_budget import learnt, wait_of

AT_THE_DOOR = ("gateway_full", "rate_limited", "quota")


@every_refusal
async def test_each_reason_is_explained_in_the_words_that_its_client_was_told(
    start: Start, no: No
) -> None:
    system, answer = await refused(start, no)
    record = await record_of(system, answer)
    assert (record.status, record.drop_reason, record.error_code) == (
        no.status,
        no.reason,
        no.code,
    )
    assert (record.outcome, record.attempts_made) == ("rejected", 0)
    assert record.tenant == "acme"
    (stay,) = record.stays
    assert stay.deployment == "mini"
    assert stay.HasField("turn") == (no.reason not in AT_THE_DOOR)


async def test_one_whose_deployment_has_had_its_money_of_the_day_says_so(start: Start) -> None:
    spent = deployment()
    spent.budget_used_up = True
    system = await start(deployment=spent)
    record = await record_of(system, await system.ask(chat()))
    assert (record.drop_reason, record.error_code, record.attempts_made) == ("budget", "budget", 0)


async def test_one_that_would_wait_too_long_has_the_wait_that_it_was_refused_for(
    start: Start,
) -> None:
    system, _ = await learnt(start, narrow(wait_budget_ms=1))
    async with busy(system):
        answer = await system.ask(chat())
    turn = (await record_of(system, answer)).stays[-1].turn
    assert turn.estimated_wait_ms == wait_of(answer)
    assert (turn.ready, turn.with_room, turn.running) == (1, 0, 1)
    assert (turn.work_before, turn.place) == (0, 0)
    assert turn.work_a_second > 0


async def test_one_that_waited_in_vain_has_how_long(start: Start) -> None:
    system = await start(scripts=(Held(),), deployment=narrow(queue_deadline_ms=50))
    async with busy(system):
        answer = await system.ask(chat())
    turn = (await record_of(system, answer)).stays[-1].turn
    assert turn.place == 1
    waited = re.search(r"it waited (\d+) ms", answer.error["message"])
    assert waited
    assert 50 <= int(waited[1]) <= turn.waited_us / 1000


async def test_one_that_left_the_queue_has_its_reason_though_nobody_heard_it(start: Start) -> None:
    system = await start(scripts=(Held(),), deployment=narrow())
    async with busy(system), waiting(system, chat()) as (leaving,):
        leaving.leave()
        line = await until(
            lambda: system.gateway.find_log("request settled", outcome="cancelled"), "it is logged"
        )
        record = await record_by(system, line["request_id"])
    assert (record.status, record.error_code, record.message) == (499, "client_gone", "")
    assert record.drop_reason == "client_gone"  # as it is counted
    assert await system.drops("client_gone") == 1
    assert record.stays[-1].turn.waited_us > 0


async def line_of(system: System, answer: Response) -> dict[str, Any]:
    """What is logged of a request."""
    ours = answer.headers["x-request-id"]
    return await until(
        lambda: system.gateway.find_log("request settled", request_id=ours), "it is logged"
    )


async def test_those_that_wait_when_a_drain_ends_are_explained_to_the_last(start: Start) -> None:
    system = await start("--drain-ms", "1500", scripts=(hang,), deployment=narrow())
    async with busy(system) as first, waiting(system, chat(), chat()) as others:
        system.gateway.terminate()
        answers = [await client.response() for client in (first, *others)]
    for answer in answers:
        line = await line_of(system, answer)
        assert (line["status"], line["error_code"]) == (503, answer.error["code"])
        assert line["drop_reason"] == answer.headers.get("x-penstock-drop-reason", "")
    assert answers[-1].headers["x-penstock-drop-reason"] == "draining"


def died_of(data: bytes) -> suspects.Suspect:
    """An engine has died of that request for chat, as the head knows."""
    body = data.partition(b"\r\n\r\n")[2]
    fingerprint = hashlib.sha256(b"\0/v1/chat/completions\0" + body).digest()
    death = suspects.EngineDeath(replica_id="elsewhere", at_ms=1_000)
    return suspects.Suspect(fingerprint=fingerprint, deaths=[death], until_ms=4_000_000_000_000)


async def test_one_that_waits_for_another_suspect_in_vain_has_that_reason(start: Start) -> None:
    system = await start("--threads", "1", scripts=(hang,))
    data = [chat(user=name) for name in ("first", "second")]
    version = await system.control.publish(
        [deployment()], [route(r) for r in system.replicas], suspects=[died_of(d) for d in data]
    )
    await system.has_routes(version)
    async with busy(system, data[0]):
        record = await record_of(system, await system.ask(data[1]))
    assert (record.drop_reason, record.outcome) == ("suspect_must_wait", "rejected")
    assert record.suspect
    assert not record.attempts


async def test_one_that_engines_died_of_is_refused_in_the_words_of_its_quarantine(
    start: Start,
) -> None:
    system = await start("--threads", "1", scripts=(engine_dies, engine_dies))
    died = [await record_of(system, await system.ask(chat())) for _ in range(2)]
    assert [record.error_code for record in died] == ["engine_dead", "engine_dead"]
    assert [record.suspect for record in died] == [False, True]
    record = await record_of(system, await system.ask(chat()))
    assert (record.status, record.error_code, record.drop_reason) == (
        400,
        "quarantined",
        "quarantined",
    )
    assert record.quarantined
    assert not record.attempts
    assert "Engines died again and again" in record.message
