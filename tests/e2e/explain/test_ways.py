"""Why a request took the way that it took, in the words that its client and the log were told."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import openai
import pytest

from tests.e2e.canary_traffic import Json
from tests.e2e.explained import Asked, Explained, question
from tests.e2e.loads import metric
from tests.e2e.resumed_streams import busiest
from tests.e2e.system import eventually

LONG = [{"role": "user", "content": "once upon a time " * 40}]
LATE: Json = {"ttft_ms": 600}
PATIENT: Json = {"max_queued": 10, "wait_budget_ms": 0, "queue_deadline_ms": 30_000}
NO_LEASE = """
USES = {"prep_recv", "remote_send", "release"}


async def route(request, engines, stats):
    decode = engines.decode[0]
    kv, held = await decode.prep_recv(request)
    await decode.release(kv)
    await engines.prefill[0].remote_send(kv, begin=held)
    return RouteDecision(decode)
"""


def test_one_that_was_slow_says_what_its_time_went_to(on_explained: Explained) -> None:
    asked = on_explained.ask(simulate=LATE)
    told = on_explained.told(asked)
    told.says("prefill 6", "is done (its engine says:", "time went to")
    assert asked.id in on_explained.listed(slower_than_ms=500)
    quick = on_explained.ask()
    assert quick.id not in on_explained.listed(slower_than_ms=500)


def test_one_that_waited_says_behind_whom_and_for_how_long(on_explained: Explained) -> None:
    on_explained.sets("narrow", **PATIENT)
    with on_explained.busy() as held, on_explained.begun_soon("narrow") as waiting:
        eventually(
            lambda: metric(on_explained.system, "penstock_gateway_queued", deployment="narrow"),
            within=10,
            what="one that waits",
        )
        held.leave()
        asked = waiting.whole()
    told = on_explained.told(asked)
    told.says("at place 1 of the queue", "1 replica ready, 0 with a free place", "it has waited")
    assert told.line["queue_wait_ms"] > 0


def test_a_stream_that_stood_still_says_for_how_long(on_explained: Explained) -> None:
    with on_explained.begun("sim", simulate={"tokens_per_second": 0.45}, max_tokens=2) as stream:
        told = on_explained.told(stream.whole())
    (gap,) = told.record["gaps"]
    assert gap["ms"] > 1000
    told.says(f"its client is given nothing for {gap['ms']:,} ms")


def test_one_whose_client_left_the_queue_says_so(on_explained: Explained) -> None:
    on_explained.sets("narrow", **PATIENT)
    with on_explained.busy():
        on_explained.leaves("narrow", "who-left")
        found = eventually(
            lambda: on_explained.found("who-left"), within=10, what="what is told of it"
        )
    assert found is not None
    record = found["record"]
    line = on_explained.line(record["request_id"])
    assert (record["status"], record["outcome"]) == (499, "cancelled")
    assert (line["status"], line["outcome"]) == (499, "cancelled")
    text = on_explained.says("explain", "who-left")
    assert "its client left after" in text
    assert "before it was answered" in text
    assert "at place 1 of the queue" in text
    assert record["request_id"] in on_explained.listed(status=499)


@pytest.fixture(scope="module")
def key(on_explained: Explained) -> str:
    """Of a tenant that may use one adapter."""
    return on_explained.fleet.new_key(adapters=["a"])


@pytest.mark.parametrize(
    ("status", "code", "body"),
    [
        (404, "model_not_found", {"model": "gpt-9"}),
        (404, "model_not_found", {"model": "sim:none@1"}),
        (400, "invalid_value", {"messages": []}),
        (400, "invalid_json", {"content": b"{"}),
        (503, "queue_full", {"model": "refusing"}),  # by the engine: admission let it in
    ],
    ids=lambda each: str(each.get("model", "")) if isinstance(each, dict) else str(each),
)
def test_one_that_could_not_be_answered_says_the_error_that_its_client_was_told(
    on_explained: Explained, status: int, code: str, body: Json
) -> None:
    asked = on_explained.ask(**body)
    assert (asked.status, asked.error["code"], asked.reason) == (status, code, "")
    on_explained.told(asked)


def test_one_for_anothers_adapter_says_whose_it_was_and_that_it_may_not(
    on_explained: Explained, key: str
) -> None:
    forbidden = on_explained.ask("sim:b@1", key=key)
    assert forbidden.status == 403
    told = on_explained.told(forbidden)
    told.says(f"tenant {told.record['tenant']}, key {told.record['key_id']}")
    assert key not in told.text
    assert forbidden.id in on_explained.listed(tenant=told.record["tenant"], status="4xx")
    allowed = on_explained.told(on_explained.ask("sim:a@1", key=key))
    allowed.says("with adapter a@1")


def test_one_that_was_degraded_says_to_which_rung_and_why(on_explained: Explained) -> None:
    on_explained.sets("narrow", max_queued=0, degrade=["fallback:canned"])
    with on_explained.busy():
        asked = on_explained.ask("narrow")
    on_explained.sets("narrow", degrade=[])
    assert asked.headers["x-penstock-degraded"] == "queue_full"
    told = on_explained.told(asked)
    told.says(
        "narrow could not answer it: queue_full",
        "it comes to canned",
        "answered by rung fallback:canned, instead of narrow",
    )
    assert (told.line["degraded"], told.line["rung"]) == ("queue_full", "fallback:canned")
    assert asked.id in on_explained.listed(deployment="narrow", reason="queue_full")


def test_one_that_was_trimmed_says_what_was_left_out(on_explained: Explained) -> None:
    on_explained.sets("narrow", max_queued=10, max_prompt_tokens=60, degrade=["trim"])
    turn = {"role": "assistant", "content": "once upon a time " * 5}
    asked = on_explained.ask("narrow", messages=[*LONG, turn, *question()])
    on_explained.sets("narrow", max_prompt_tokens=0, degrade=[])
    trimmed = asked.headers["x-penstock-trimmed"]
    told = on_explained.told(asked)
    told.says(trimmed, "the oldest")
    assert told.line["trimmed"]


def test_one_that_failed_over_says_who_failed_and_who_answered(on_explained: Explained) -> None:
    with on_explained.begun_soon("sim", simulate={"ttft_ms": 3000}) as stream:
        victim = eventually(lambda: _at_work(on_explained), within=10, what="a replica at work")
        assert victim is not None
        on_explained.system.kill(victim["pid"])
        asked = stream.whole()
    assert asked.status == 200
    told = on_explained.told(asked)
    first, second = told.record["attempts"]
    assert (first["replica"], second["reason"]) == (victim["id"], "again")
    told.says(f"{victim['id']} fails: {first['error']}", "again: the call before broke")
    _is_whole(on_explained)


def test_one_that_went_on_elsewhere_says_why_and_where(on_explained: Explained) -> None:
    paced = {"tokens_per_second": 40}
    with on_explained.begun("sim", simulate=paced, max_tokens=60) as stream:
        victim = next(r for r in on_explained.system.replicas() if r["id"] == stream.replica)
        on_explained.system.kill(victim["pid"])
        asked = stream.whole()
    assert not asked.error
    told = on_explained.told(asked)
    reason = told.record["attempts"][1]["reason"]
    assert reason.startswith("resume:")
    told.says(f"{victim['id']} fails:", f"{reason}: its replica was", "the answer is to go on here")
    assert told.line["resumed_from"] == victim["id"]
    _is_whole(on_explained)


def _at_work(at: Explained) -> Json | None:
    """The replica of sim that has a call."""
    if not metric(at.system, "penstock_gateway_in_flight", deployment="sim"):
        return None
    return busiest(at.system)


def _is_whole(at: Explained) -> None:
    """Returns when both replicas of sim are back."""
    eventually(
        lambda: sum(r["deployment"] == "sim" for r in at.system.replicas()) == 2,
        within=30,
        what="both replicas of sim",
    )


def test_one_that_a_program_led_says_each_leg(on_explained: Explained) -> None:
    asked = _led(on_explained, "decided", name="prefill_decode")
    told = on_explained.told(asked)
    legs = {leg["call"]: leg for leg in told.record["legs"]}
    sent = legs["remote_send"]
    assert sent["tokens"] == int(asked.headers["x-penstock-kv-moved"]) > 0
    assert sent["took_us"] > 0
    told.says(
        "decided: it said where the request goes",
        f"prep_recv at {legs['prep_recv']['replica']}",
        f"remote_send at {sent['replica']}, KV of {sent['tokens']} tokens, ",
    )


def test_a_leg_that_failed_says_why_and_that_the_gateway_chose(on_explained: Explained) -> None:
    asked = _led(on_explained, "own_policy", file=NO_LEASE)
    told = on_explained.told(asked)
    assert told.record["status"] == 200
    (failed,) = (leg for leg in told.record["legs"] if leg["failure"])
    assert (failed["call"], failed["failure"]) == ("remote_send", "no_lease")
    told.says("own_policy: ", f"remote_send at {failed['replica']}", "failed: no_lease")


def _led(at: Explained, outcome: str, **program: Any) -> Asked:
    """One that this program led to that."""
    at.sets("led", selection_policy="program", program=program)

    def led() -> Asked | None:
        asked = at.ask("led", messages=[*question(), *LONG])
        return asked if at.found(asked.id)["record"]["program"] == outcome else None

    asked = eventually(led, within=20, what=f"one that was {outcome}")
    assert asked is not None
    return asked


@contextmanager
def _canary(at: Explained, candidate: str) -> Iterator[Asked]:
    """One of those that a canary is asked for."""
    half = [{"permille": 400, "min_sessions": 100_000, "min_seconds": 0}]
    spec = {"name": f"to-{candidate}", "target": "sim", "candidate": candidate, "steps": half}
    at.system.change("POST", "canaries", spec)

    def sent() -> Asked | None:
        asked = at.ask()
        ways = [stay["way"] for stay in at.found(asked.id)["record"]["stays"]]
        return asked if "canary" in ways else None

    try:
        asked = eventually(sent, within=20, what="one of the canary")
        assert asked is not None
        yield asked
    finally:
        at.system.change("POST", f"canaries/to-{candidate}/abort")


def test_one_that_was_sent_to_a_canary_says_so(on_explained: Explained) -> None:
    with _canary(on_explained, "canned") as asked:
        assert asked.headers["x-penstock-backend"] == "canned"
        told = on_explained.told(asked)
    told.says("to-canned, candidate arm", "it comes to canned: it is in the share of a canary")
    assert told.line["canary"] == "to-canned"


def test_one_that_its_canary_could_not_answer_says_why_and_who_did(
    on_explained: Explained,
) -> None:
    with _canary(on_explained, "refusing") as asked:
        assert (asked.status, asked.headers["x-penstock-backend"]) == (200, "sim")
        told = on_explained.told(asked)
    told.says(
        "it comes to refusing: it is in the share of a canary",
        "refusing could not answer it: queue_full",
        "it comes back to sim",
    )


def test_one_that_was_repeated_names_the_shadow(on_explained: Explained) -> None:
    shadow = {"name": "try", "primary": "sim", "candidate": "narrow", "share_permille": 1000}
    on_explained.system.change("POST", "shadows", shadow)

    def repeated() -> Asked | None:
        asked = on_explained.ask()
        return asked if on_explained.found(asked.id)["record"]["shadows"] else None

    asked = eventually(repeated, within=20, what="one that was repeated")
    assert asked is not None
    on_explained.told(asked).says("shadowed by", "try")
    on_explained.system.change("DELETE", "shadows/try")


def test_the_id_that_the_sdk_shows_and_the_callers_own_are_what_explain_takes(
    on_explained: Explained,
) -> None:
    url, own = on_explained.system.base_url, "the-callers/own id"
    with openai.OpenAI(base_url=url, api_key="none", max_retries=0) as client:
        create: Any = client.chat.completions.with_raw_response.create
        replies = [
            create(model="sim", messages=question(), extra_headers={"x-request-id": own})
            for _ in range(2)
        ]
        with pytest.raises(openai.NotFoundError) as caught:
            create(model="gpt-9", messages=question())
    first, second = (reply.request_id for reply in replies)
    for name in (second, own):
        assert on_explained.says("explain", name).startswith(f"{second} was answered with 200")
    assert on_explained.found(own)["namesakes"] == [first]
    assert first in on_explained.says("explain", own)
    assert "model_not_found" in on_explained.says("explain", str(caught.value.request_id))


def test_one_that_engines_died_of_says_so_and_that_it_is_quarantined(
    on_explained: Explained,
) -> None:
    deadly: Json = {"messages": question(), "max_tokens": 40}
    deadly["simulate"] = {"die_after_tokens": 4, "tokens_per_second": 50}
    died = _whole(on_explained, deadly)
    assert died.error["code"] == "engine_dead"
    told = on_explained.told(died)
    told.says("fails: engine_dead", "resume:crash: its engine crashed")
    _is_whole(on_explained)
    refused = _whole(on_explained, deadly)
    assert refused.reason == "quarantined"
    told = on_explained.told(refused)
    told.says("engines had died with this request aboard: it is refused")
    assert told.record["quarantined"]


def _whole(at: Explained, body: Json) -> Asked:
    """How a stream ended by itself."""
    with at.begun("sim", **body) as stream:
        return stream.whole()
