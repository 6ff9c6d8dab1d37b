"""What a gateway keeps of its decisions: a record of each kind of request, in the words that its
client and the log were told. That every line of the log agrees with its record is held for all
tests of this folder, by `recorded.all_hold`."""

from __future__ import annotations

import asyncio
import json

from penstock.v1 import explain_pb2 as v1
from tests.fakes.fake_control import deployment, route, tenant
from tests.fakes.fake_replica import DONE, FakeCall, delta, hello, last_delta, refuse
from tests.fakes.resumable import answer as spoken
from tests.fakes.resumable import breaking, saying
from tests.fakes.waiting import until
from tests.gateway_cpp.blackbox.conftest import Start, System
from tests.gateway_cpp.blackbox.fleets import failing, fleet, full, laddered, trimming
from tests.gateway_cpp.blackbox.held import Held, busy, narrow, waiting
from tests.gateway_cpp.blackbox.raw_http import chat
from tests.gateway_cpp.blackbox.recorded import record_by, record_of
from tests.gateway_cpp.blackbox.test_canaries import with_canary
from tests.gateway_cpp.blackbox.test_resumed_streams import Breaks, alike, broken
from tests.gateway_cpp.blackbox.test_router_programs import MOVED, Lead, lead, split

__all__ = ["lead"]  # a fixture

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
ORDINARY_BYTES = 400


async def test_an_ordinary_request_has_all_that_was_decided_in_few_bytes(start: Start) -> None:
    system = await start(
        scripts=(hello, hello, hello), tenants=[tenant(keys=["first"])], keys_required=True
    )
    headers = (
        f"Authorization: Bearer first\r\ntraceparent: 00-{TRACE}-00f067aa0ba902b7-01\r\n"
        "x-client-request-id: theirs\r\n"
    )
    record = await record_of(system, await system.ask(chat(headers)))
    assert record.ByteSize() < ORDINARY_BYTES
    assert (record.tenant, record.key_id, record.model) == ("acme", "k1", "mini")
    assert (record.trace_id.hex(), record.client_request_id) == (TRACE, "theirs")
    (stay,) = record.stays
    assert (stay.deployment, stay.way, stay.left_for) == ("mini", v1.Stay.WAY_NAMED, "")
    assert stay.prompt_estimate > 0
    assert stay.completion_estimate > 0
    turn = stay.turn
    assert (turn.ready, turn.with_room, turn.place, turn.priority) == (3, 3, 0, "normal")
    (attempt,) = record.attempts
    assert (attempt.reason, attempt.error) == ("first", "")
    assert attempt.sent_us <= attempt.first_us <= attempt.ended_us <= record.duration_us
    assert attempt.pick.policy == "power_of_two"
    taken, other = attempt.pick.looks
    assert (taken.replica, taken.verdict, other.verdict) == (attempt.replica, "taken", "busier")
    assert attempt.pick.more == 1
    for name in ("theirs", TRACE):
        (found,) = await system.control.explaining.ask(v1.ExplainQuestion(id=name))
        assert found == record


async def test_one_is_found_by_our_id_before_those_whose_clients_call_theirs_so(
    system: System,
) -> None:
    ours = (await system.ask(chat())).headers["x-request-id"]
    long = "x" * 500  # of which a record has a part
    for theirs in (ours, long):
        assert (await system.ask(chat(f"x-client-request-id: {theirs}\r\n"))).status == 200
    await record_by(system, ours)
    asked = system.control.explaining.ask
    first, other = await asked(v1.ExplainQuestion(id=ours))
    assert (first.request_id, other.client_request_id) == (ours, ours)
    (found,) = await asked(v1.ExplainQuestion(id=long))
    assert found.client_request_id == long[:128]


async def test_one_that_was_refused_says_the_reason_that_its_client_was_told(start: Start) -> None:
    held = Held()
    system = await start(scripts=(held,))
    await system.has_routes(
        await system.control.publish([narrow(max_queued=0)], [route(system.replicas[0])])
    )
    async with busy(system):
        answer = await system.ask(chat())
    record = await record_of(system, answer)
    assert answer.headers["x-penstock-drop-reason"] == record.drop_reason == "queue_full"
    assert record.message.encode() in answer.body
    assert (record.status, record.outcome, record.error_code) == (
        answer.status,
        "rejected",
        json.loads(answer.body)["error"]["code"],
    )
    assert not record.attempts
    (stay,) = record.stays
    assert (stay.turn.ready, stay.turn.with_room, stay.turn.running) == (1, 0, 1)


async def test_one_that_waited_says_who_was_ahead_and_what_its_wait_was_made_of(
    start: Start,
) -> None:
    held = Held()
    system = await start("--threads", "1", scripts=(held,), deployment=narrow())
    held.let_go()
    assert (await system.ask(chat())).status == 200
    async with busy(system), waiting(system, chat(), chat()) as clients:
        held.let_go(3)
        for client in clients:
            assert (await client.head())[0] == 200
    records = await system.control.explaining.ask(v1.ExplainQuestion(list=v1.RequestFilter()))
    places = {record.stays[-1].turn.place: record for record in records}
    assert sorted(places) == [0, 1, 2]
    turn = places[2].stays[-1].turn
    assert (turn.ahead_normal, turn.running, turn.with_room) == (1, 1, 0)
    assert turn.work_before > 0
    assert turn.work_a_second > 0
    assert turn.waited_us > 0
    assert places[2].attempts[0].pick.looks[0].verdict == "taken"


async def test_one_that_was_degraded_has_each_stay_with_what_it_left_it_for(start: Start) -> None:
    broken_rung = failing(500, "internal_error")
    async with full(start, answers=(broken_rung, hello)) as (made, _):
        answer = await made.system.ask(chat())
        record = await record_of(made.system, answer)
    assert answer.headers["x-penstock-degraded"] == record.degraded == "queue_full"
    assert (record.rung, record.asked) == ("fallback:canned", "mini")
    stays = [(stay.deployment, stay.way, stay.left_for) for stay in record.stays]
    assert stays[0] == ("mini", v1.Stay.WAY_NAMED, "queue_full")
    assert stays[-2:] == [
        ("big", v1.Stay.WAY_RUNG, "internal_error"),
        ("canned", v1.Stay.WAY_RUNG, ""),
    ]
    assert [(a.reason, a.error) for a in record.attempts] == [
        ("first", "internal_error"),
        ("first", ""),
    ]


async def test_one_that_no_rung_could_answer_ends_where_it_was_asked(start: Start) -> None:
    sick = failing(500, "internal_error")
    async with full(start, answers=(sick, sick)) as (made, _):
        answer = await made.system.ask(chat())
        record = await record_of(made.system, answer)
    assert answer.headers["x-penstock-drop-reason"] == record.drop_reason == "queue_full"
    assert record.stays[-1].deployment == "mini"
    assert record.stays[-1].way == v1.Stay.WAY_RETURNED
    assert record.stays[-1].turn == record.stays[0].turn


async def test_one_that_was_trimmed_says_what_was_left_out(start: Start) -> None:
    made = await fleet(start, mini=laddered(), scripts=(trimming, hello, hello))
    answer = await made.system.ask(chat())
    record = await record_of(made.system, answer)
    told = f"messages={record.trimmed_messages}, tokens={record.trimmed_tokens}"
    assert answer.headers["x-penstock-trimmed"] == told == "messages=3, tokens=812"
    assert (record.degraded, record.rung) == ("context_length_exceeded", "trim")
    assert [stay.deployment for stay in record.stays] == ["mini", "mini"]


async def test_one_that_failed_over_says_why_the_first_was_not_asked_again(start: Start) -> None:
    sick = refuse(503, "engine_error", retry=True)
    sticky = deployment(selection_policy="session")
    system = await start("--threads", "1", scripts=(sick, hello), deployment=sticky)
    for i in range(32):
        answer = await system.ask(chat(f"x-penstock-session: s{i}\r\n"))
        record = await record_of(system, answer)
        if record.attempts_made > 1:  # its session is at home where it is refused
            break
    first, second = record.attempts
    assert (first.replica, first.reason, first.error) == ("r1", "first", "engine_error")
    assert (second.replica, second.reason, second.error) == ("r2", "failover", "")
    looks = {look.replica: look.verdict for look in second.pick.looks}
    assert looks == {"r1": "tried", "r2": "taken"}
    assert first.ended_us <= second.sent_us


async def test_one_that_went_on_elsewhere_says_what_broke_it_and_how_long_it_paused(
    start: Start,
) -> None:
    whole, breaks = spoken(5), Breaks()
    system = await alike(start, breaking(whole, 3, breaks), saying(whole))
    answer = await broken(system, breaks.off, whole.said(3))
    assert answer.body == whole.body
    record = await record_of(system, answer)
    assert [attempt.reason for attempt in record.attempts] == ["first", "resume:kill"]
    first, second = record.attempts
    assert first.error
    assert first.ended_us <= second.sent_us <= second.first_us
    assert second.pick.policy == "resume"
    assert (record.status, record.outcome, record.message) == (200, "succeeded", "")


async def test_one_that_a_program_led_has_each_leg(lead: Lead) -> None:
    led = await lead(split)
    answer = await led.ask()
    record = await record_of(led.system, answer)
    assert record.program == "decided"
    assert [leg.call for leg in record.legs] == ["tokenize", "prep_recv", "remote_send"]
    assert record.legs[-1].tokens == MOVED
    assert record.legs[-1].took_us > 0
    assert not any(leg.failure for leg in record.legs)
    (attempt,) = record.attempts
    assert attempt.pick.policy == "program"
    assert attempt.pick.looks[0].replica == attempt.replica == "r3"


async def test_one_of_a_canary_says_its_way_there_and_back(start: Start) -> None:
    system, _, _ = await with_canary(start, refuse(500, "engine_error", retry=True))
    record = await record_of(system, await system.ask(chat()))
    assert [(stay.deployment, stay.way, stay.left_for) for stay in record.stays] == [
        ("next", v1.Stay.WAY_CANARY, "engine_error"),
        ("mini", v1.Stay.WAY_RETURNED, ""),
    ]


async def test_one_whose_stream_stood_still_tells_the_gap(start: Start) -> None:
    async def slowly(call: FakeCall) -> None:
        await call.send(delta("a "))
        await asyncio.sleep(1.3)
        await call.send(last_delta() + DONE, events=2)
        await call.finish()

    system = await start(scripts=(slowly,))
    answer = await system.ask(chat(stream=True))
    record = await record_of(system, answer)
    (gap,) = record.gaps
    assert 1000 < gap.ms < 3000
    assert record.first_byte_us < gap.at_us <= record.duration_us


async def test_one_whose_client_left_was_told_nothing(start: Start) -> None:
    held = Held()
    system = await start(scripts=(held,))
    async with system.client() as client:
        await client.send(chat())
        await system.reports(lambda r: any(d.in_flight for d in r.deployments), "it is there")
    line = await until(
        lambda: system.gateway.find_log("request settled", outcome="cancelled"), "it is logged"
    )
    assert line
    record = await record_by(system, line["request_id"])
    assert (record.status, record.message) == (499, "")
    assert record.attempts[0].ended_us > 0


async def test_a_gateway_that_keeps_nothing_answers_so(start: Start) -> None:
    system = await start("--explain-budget-bytes", "0")
    assert (await system.ask(chat())).status == 200
    assert not await system.control.explaining.ask(v1.ExplainQuestion(list=v1.RequestFilter()))
    assert await system.metric("penstock_gateway_explain_bytes") == 0


async def test_the_page_of_metrics_counts_what_is_kept(system: System) -> None:
    assert (await system.ask(chat())).status == 200
    assert (await system.ask(chat(model="nobody"))).status == 404
    kept = "penstock_gateway_explain_records"
    assert await system.metric(kept, kind="ordinary") == 1
    assert await system.metric(kept, kind="error") == 1
    assert 0 < await system.metric("penstock_gateway_explain_bytes") < 2000


async def test_a_tenant_that_floods_pushes_out_nobody_elses(start: Start) -> None:
    system = await start(
        *("--explain-budget-bytes", "65536"),
        tenants=[tenant("quiet", keys=["quiet"]), tenant("flood", keys=["flood"])],
        keys_required=True,
    )
    quiet = await system.ask(chat("Authorization: Bearer quiet\r\n"))
    async with system.client() as client:
        for i in range(300):
            answer = await client.ask(chat("Authorization: Bearer flood\r\n", seed=i))
            assert answer.status == 200
    await record_of(system, quiet)
    dropped = "penstock_gateway_explain_dropped_total"
    assert await system.metric(dropped, reason="tenant_share") > 0
    assert await system.metric(dropped, reason="budget") == 0


async def test_records_are_told_again_after_the_head_was_away(start: Start) -> None:
    system = await start()
    answer = await system.ask(chat())
    await record_of(system, answer)
    await system.control.die()
    await system.control.start_again()
    await until(lambda: len(system.control.explaining.hellos) == 2, "it opens the stream again")
    record = await record_of(system, answer)
    assert record.status == 200
