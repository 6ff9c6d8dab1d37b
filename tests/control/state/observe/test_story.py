"""What became of a request and why, told in the words that its client and the log were told."""

from __future__ import annotations

from dataclasses import replace

import pytest

from penstock.control.state.observe.record import (
    Attempt,
    Gap,
    Leg,
    Look,
    Pick,
    QueueTurn,
    RequestRecord,
    Stay,
    Way,
)
from penstock.control.state.observe.story import story_of
from penstock.control.state.observe.words import span

TURN = QueueTurn(
    estimated_wait_ms=1200, ready=3, with_room=0, running=12, work_before=54_000,
    work_a_second=45_000, ahead_high=1, ahead_normal=2, ahead_low=0, place=4, priority="normal",
    waited_us=1_150_000,
)  # fmt: skip
FULL = "every replica of `mini` is busy: 8 requests wait, and max_queued is 8; try again"
OK = RequestRecord(
    request_id="req_1", received_us=1_767_355_200_000_000, path="/v1/chat/completions",
    tenant="acme", key_id="k1", model="mini", status=200, outcome="succeeded",
    duration_us=2_500_000, stays=(Stay("mini", entered_us=300),), first_byte_us=1_400_000,
    events=20, bytes=4_000, prompt_tokens=12, completion_tokens=20,
    attempts=(Attempt("r1", "first", sent_us=1_200_000, first_us=1_400_000, ended_us=2_400_000),),
    attempts_made=1,
)  # fmt: skip


def told(it: RequestRecord) -> str:
    """All of it on one line."""
    story = story_of(it)
    facts = [f"{fact.name}: {fact.text}" for fact in story.facts]
    return " | ".join([story.title, *facts, *(each.text for each in story.line)])


def left(it: RequestRecord, deployment: str, why: str, way: Way = Way.RUNG) -> RequestRecord:
    """It went on to another deployment."""
    first = replace(it.stays[0], left_for=why)
    return replace(it, stays=(first, Stay(deployment, way, entered_us=1_000_000)))


def failed(it: RequestRecord, replica: str, error: str, reason: str) -> RequestRecord:
    """A call failed, and another one was made for this reason."""
    broken = Attempt(replica, "first", sent_us=1_100_000, ended_us=1_150_000, error=error)
    again = tuple(replace(each, reason=reason) for each in it.attempts)
    return replace(it, attempts=(broken, *again), attempts_made=2)


REFUSED = replace(
    OK, status=429, outcome="rejected", error_code="rate_limit_exceeded", attempts=(),
    attempts_made=0, first_byte_us=0, duration_us=900, events=0, bytes=0,
)  # fmt: skip


WAITED_TO_GO_ON = replace(
    failed(OK, "r1", "upstream_error", "resume:lost"),
    stays=(Stay("mini", turn=QueueTurn(ready=1, with_room=1, waited_us=1_050_000)),),
)


def test_a_wait_is_told_before_the_call_that_it_was_for() -> None:
    it = replace(WAITED_TO_GO_ON, attempts=(
        replace(WAITED_TO_GO_ON.attempts[0], sent_us=32, ended_us=199_000),
        *WAITED_TO_GO_ON.attempts[1:],
    ))  # fmt: skip
    words = told(it)
    assert words.index("r1 fails: upstream_error") < words.index("it has waited 1.05 s")
    assert words.index("it has waited 1.05 s") < words.index("resume:lost")


@pytest.mark.parametrize(
    ("it", "words"),
    [
        (OK, ["req_1 was answered with 200, after 2.5 s", "tenant acme, key k1",
              "mini is deployment mini",
              "counted 12 of the prompt (0 from the cache), 20 of the answer",
              "4,000 bytes in 20 events, the first after 1.4 s"]),
        (replace(OK, stays=(Stay("mini", turn=TURN),)),
         ["mini has 3 replicas ready, 0 with a free place; 12 requests under way; waiting: 1 of"
          " high, 2 of normal, 0 of low priority",
          "it waits at place 4 of the queue, with normal priority; estimated wait 1,200 ms: token"
          " work of 54,000 goes before it, done at 45,000 a second", "it has waited 1.15 s"]),
        (replace(OK, stays=(Stay("mini", turn=QueueTurn(ready=1, with_room=1, waited_us=9)),)),
         ["mini has 1 replica ready, 1 with a free place; 0 requests under way | it has a place"
          " at once | it is sent to r1: the first call"]),
        (replace(OK, phase_us=(100, 50, 1_100_000, 0, 200_000, 1_100_000, 30),
                 gaps=(Gap(1_500_000, 1_030),)),
         ["time went to: parse 0.1 ms, resolve 0.05 ms, admit 1.1 s, open 200 ms, stream 1.1 s,",
          "its client is given nothing for 1,030 ms"]),
        (replace(REFUSED, drop_reason="queue_full", message=FULL,
                 stays=(Stay("mini", turn=replace(TURN, place=0, waited_us=0)),)),
         ["req_1 was refused with 429 (queue_full), after 0.9 ms", f"its client was told: {FULL}",
          "waiting: 1 of high", "it gets no place, with normal priority; estimated wait 1,200",
          "it ends: rejected, queue_full"]),
        (replace(REFUSED, tenant="", key_id="", status=401, outcome="invalid", stays=(),
                 error_code="invalid_api_key"),
         ["req_1 could not be taken with 401 (invalid_api_key)", "a client without a key",
          "mini, which was not resolved"]),
        (left(replace(OK, degraded="queue_full", rung="fallback:mini-2", asked="mini"), "mini-2",
              "queue_full"),
         ["answered with 200, degraded (queue_full), after",
          "degraded: queue_full: answered by rung fallback:mini-2, instead of mini",
          "mini could not answer it: queue_full",
          "it comes to mini-2: a rung of the ladder", "it ended at deployment mini-2"]),
        (replace(OK, stays=(*OK.stays, Stay("off", Way.RUNG, left_for="no_replica",
                                             passed_over=True))),
         ["off is passed over: no_replica"]),
        (replace(OK, degraded="token_budget_exceeded", rung="trim", trimmed_messages=3,
                 trimmed_tokens=812),
         ["degraded: token_budget_exceeded: answered by rung trim",
          "messages=3, tokens=812: the oldest 3 messages left"]),
        (failed(OK, "r0", "engine_dead", "failover"),
         ["it is sent to r0: the first call", "r0 fails: engine_dead",
          "it is sent to r1: failover: the call before failed"]),
        (failed(OK, "r0", "engine_dead", "resume:kill"),
         ["it is sent to r1: resume:kill: its replica was killed, the answer is to go on here"]),
        (replace(OK, attempts_made=15), ["14 calls to replicas came before, and are not kept"]),
        (replace(OK, program="slow", legs=(Leg("remote_send", "r2", 992, 55_000),
                                           Leg("prep_recv", "r3", failure="deadline"))),
         ["router program: slow: it did not say in time",
          "leg: remote_send at r2, KV of 992 tokens, 55 ms, done",
          "leg: prep_recv at r3, 0 ms, failed: deadline"]),
        (left(replace(OK, canary="next", of_candidate=True), "mini", "engine_dead", Way.RETURNED),
         ["canary: next, candidate arm", "it comes back to mini: neither its canary nor a rung"]),
        (replace(OK, canary="next", stays=(Stay("small", Way.CANARY, by="mini:calm",
                                                 adapter="calm@2"),)),
         ["canary: next, stable arm", "deployment small with adapter calm@2 by mini:calm",
          "it is in the share of a canary"]),
        (replace(OK, shadows=("smaller", "recorded")), ["shadowed by: smaller, recorded"]),
        (replace(OK, suspect=True), ["quarantine: engines had died with this request aboard: it"
                                     " ran apart from others"]),
        (replace(REFUSED, quarantined=True, suspect=True, status=500,
                 error_code="request_quarantined", outcome="failed"),
         ["req_1 failed with 500 (request_quarantined)", "it is refused"]),
        (replace(OK, outcome="cancelled"),
         ["req_1: its client left after 2.5 s, in the middle of its answer"]),
        (replace(REFUSED, outcome="cancelled", status=499, drop_reason="client_gone"),
         ["its client left after 0.9 ms, before it was answered"]),
        (replace(OK, outcome="failed", error_code="engine_dead"),
         ["req_1 failed in the middle of an answer that began with 200 (engine_dead), after 2"]),
        (replace(REFUSED, message="param: temperature"), ["what was wrong: its temperature; the"]),
        (replace(REFUSED, message="x" * 300), ["its client was told: xxx", "xxx ..."]),
        (replace(OK, client="10.0.0.7", client_request_id="own"), ["at 10.0.0.7; its own id: own"]),
        (replace(OK, cost_nanousd=1_234_567), ["cost: 0.001234567 USD"]),
    ],
)  # fmt: skip
def test_why_it_was_so_is_told(it: RequestRecord, words: list[str]) -> None:
    found = told(it)
    assert [each for each in words if each not in found] == [], found


def test_replicas_that_were_looked_at_are_told_with_their_load_and_why_not() -> None:
    looks = (Look("r1", 2, "taken"), Look("r2", 5, "busier"), Look("r3", 0, "not_ready"))
    pick = Pick("power_of_two", looks, 7)
    found = told(replace(OK, attempts=(replace(OK.attempts[0], pick=pick),)))
    assert (
        "power_of_two chooses: r1 with 2 requests is taken; r2 with 5 requests is no less busy;"
        " r3 with 0 requests is not ready; 7 more"
    ) in found


def test_what_an_engine_says_of_its_time_stands_where_it_is_done() -> None:
    attempt = replace(OK.attempts[0], queued_us=3_000, prefill_us=40_000, decode_us=950_000)
    said = "r1 is done (its engine says: queued 3 ms, prefill 40 ms, decode 950 ms)"
    assert said in told(replace(OK, attempts=(attempt,)))


def test_a_time_line_is_in_the_order_in_which_things_happened() -> None:
    it = left(failed(OK, "r0", "engine_dead", "failover"), "mini-2", "engine_dead")
    times = [each.at_us for each in story_of(it).line]
    assert times == sorted(times)
    assert times[-1] == it.duration_us


def test_words_of_a_newer_gateway_and_what_makes_no_sense_are_told_as_they_are() -> None:
    most = 2**64 - 1
    strange = RequestRecord(
        request_id="req_1", received_us=most, status=most, outcome="enchanted", duration_us=most,
        phase_us=(most,) * 16, program="dreamt",
        stays=(Stay(entered_us=most), Stay("mini", turn=QueueTurn(most, ahead_low=most))),
        attempts=(Attempt("r1", "whim", Pick("dice", (Look("r1", most, "odd"),), most)),),
        gaps=(Gap(most, most),),
    )  # fmt: skip
    found = told(strange)
    for words in ("enchanted", "dreamt", "whim", "dice chooses: r1", "is odd"):
        assert words in found
    assert told(RequestRecord()).startswith("  with 0")


@pytest.mark.parametrize(
    ("us", "words"),
    [(0, "0 ms"), (7, "0.007 ms"), (1_234, "1.23 ms"), (999_400, "999 ms"), (999_700, "1 s"),
     (4_210_000, "4.21 s"), (3_600_000_000, "3,600 s")],
)  # fmt: skip
def test_a_time_has_three_digits(us: int, words: str) -> None:
    assert span(us) == words
