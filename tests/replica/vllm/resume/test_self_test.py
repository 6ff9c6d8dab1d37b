"""What an engine's self-test finds, of engines that only count."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from penstock.replica.engine import Sink
from penstock.replica.values import Call, Failed, Finished, Head, TokenGroup
from penstock.replica.vllm.resume.self_test import SelfTest

_REFUSED = Failed(400, "invalid_request_error", "invalid_value", "no grammars here", fault="client")
_BROKEN = Failed(500, "server_error", "engine_error", "it broke")
_FULL = Failed(503, "server_error", "overloaded", "no room")


class Counting:
    """Counts from the prompt's length on. `goes_on`: what it makes of a call that it goes on with,
    the number that comes next."""

    def __init__(self, goes_on: Callable[[Call, int], int] = lambda _, number: number) -> None:
        self._goes_on = goes_on
        self.calls: list[Call] = []

    async def answer(self, call: Call, sink: Sink) -> None:
        """Writes an event for each number, and what vLLM's completions end with."""
        self.calls.append(call)
        fields = json.loads(call.body)
        had = call.resume.events if call.resume else 0
        number = len(fields["prompt"]) + had
        if call.resume:
            number = self._goes_on(call, number)
        sink.head(Head(200, "text/event-stream", created=call.resume.created if call.resume else 9))
        for at in range(had, fields["max_tokens"] + 2):
            await asyncio.sleep(0)
            _write(sink, at, number + at - had, fields["max_tokens"])
        sink.finish(Finished(1, fields["max_tokens"]))


def _write(sink: Sink, at: int, number: int, most: int) -> None:
    choices: list[Any] = []
    groups: tuple[TokenGroup, ...] = ()
    if at < most:
        end = "length" if at == most - 1 else None
        choices = [{"text": f"{number} ", "finish_reason": end}]
        groups = (TokenGroup(0, (number,), end or ""),)
    event: dict[str, Any] = {"created": 9, "choices": choices, "usage": None}
    if at == most:
        event["usage"] = {"completion_tokens": most}
    body = f"data: {json.dumps(event)}\n\n" if at <= most else "data: [DONE]\n\n"
    sink.write(body.encode(), 1, groups)


async def _tested(answer: Any, pauses_s: Sequence[float] = (0.0,) * 4) -> SelfTest:
    told = asyncio.Event()
    test = SelfTest(answer, "m", told.set, pauses_s)
    test.begin()
    await told.wait()
    return test


async def test_an_engine_that_goes_on_as_it_would_have_passes() -> None:
    engine = Counting()
    test = await _tested(engine.answer)
    assert (test.outcome, test.failed) == ("", False)
    cut = [call for call in engine.calls if call.resume]
    assert {call.request_id for call in cut} == {
        f"self-test-{kind}" for kind in ("greedy", "seeded", "penalties", "schema")
    }
    assert len(cut) == 4 * 4
    behind_the_end = [call for call in cut if call.resume and call.resume.groups[-1].finish_reason]
    assert len(behind_the_end) == 4


async def test_an_engine_that_goes_on_otherwise_says_with_what_and_where() -> None:
    def astray(call: Call, number: int) -> int:
        return number + 1 if call.request_id.endswith("seeded") else number

    test = await _tested(Counting(astray).answer)
    assert test.failed
    assert test.outcome is not None
    assert re.fullmatch(
        r"its self-test failed: seeded: cut after \d+ chunks it went on otherwise than it had",
        test.outcome,
    )


async def test_two_words_that_are_nearly_as_likely_fail_no_engine() -> None:
    astray = iter([1])

    def once(call: Call, number: int) -> int:
        return number + next(astray, 0) if call.request_id.endswith("greedy") else number

    assert (await _tested(Counting(once).answer)).outcome == ""


async def test_a_kind_that_the_model_does_not_answer_is_not_asked_of_it() -> None:
    engine = Counting()

    async def without_schemas(call: Call, sink: Sink) -> None:
        if call.request_id.endswith("schema"):
            sink.fail(_REFUSED)
        else:
            await engine.answer(call, sink)

    assert (await _tested(without_schemas)).outcome == ""


async def test_a_model_that_answers_nothing_is_not_said_to_go_on() -> None:
    async def refuses(call: Call, sink: Sink) -> None:
        sink.fail(_REFUSED)

    test = await _tested(refuses)
    assert test.outcome is not None
    assert "greedy: no grammars here" in test.outcome


@pytest.mark.parametrize(
    "failed", [_BROKEN, replace(_BROKEN, code="bad_resume", status=400), _REFUSED]
)
async def test_an_engine_that_fails_to_go_on_says_so(failed: Failed) -> None:
    engine = Counting()

    async def broken(call: Call, sink: Sink) -> None:
        if call.resume:
            sink.fail(failed)
        else:
            await engine.answer(call, sink)

    test = await _tested(broken)
    assert test.outcome is not None
    assert failed.code in test.outcome


@pytest.mark.parametrize("failed", [_FULL, replace(_BROKEN, retryable=True)])
@pytest.mark.parametrize("resumed", [False, True])
async def test_a_trouble_that_passes_is_no_finding(failed: Failed, *, resumed: bool) -> None:
    engine, troubles = Counting(), iter([failed] * 9)

    async def troubled(call: Call, sink: Sink) -> None:
        one = next(troubles, None) if resumed == bool(call.resume) else None
        if one:
            sink.fail(one)
        else:
            await engine.answer(call, sink)

    test = await _tested(troubled)
    assert (test.outcome, test.failed, next(troubles, None)) == ("", False, None)


async def test_while_it_waits_to_try_again_nothing_is_known() -> None:
    asked = asyncio.Event()

    async def full(call: Call, sink: Sink) -> None:
        asked.set()
        sink.fail(_FULL)

    test = SelfTest(full, "m", lambda: None, (3600.0,))
    test.begin()
    await asked.wait()
    await test.stop()
    assert (test.outcome, test.failed) == (None, False)


async def test_an_error_of_the_test_itself_is_an_outcome() -> None:
    async def raises(call: Call, sink: Sink) -> None:
        sink.head(Head(200, "text/event-stream"))
        sink.write(b"no json\n\n")
        sink.finish(Finished(0, 0))

    test = await _tested(raises)
    assert test.failed


async def test_one_that_is_stopped_has_no_outcome_and_begins_anew() -> None:
    engine = Counting()
    test = SelfTest(engine.answer, "m", lambda: None)
    test.begin()
    await test.stop()
    assert test.outcome is None
    assert (await _tested(engine.answer)).outcome == ""


async def test_what_is_ruled_out_is_not_tested() -> None:
    engine = Counting()
    test = SelfTest(engine.answer, "m", lambda: None)
    test.rule_out("it pools")
    test.begin()
    assert (test.outcome, test.failed, engine.calls) == ("it pools", False, [])
