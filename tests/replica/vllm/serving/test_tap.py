"""The tap's figures, from outputs shaped like vLLM's."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator
from types import SimpleNamespace
from typing import Any

import pytest

from penstock.replica.values import Call, TokenGroup, Usage
from penstock.replica.vllm.serving.tap import CallTap, RequestDropped


def _output(*parts: Any, prompt: int | None = 5, cached: int | None = 3) -> Any:
    metrics = SimpleNamespace(queued_ts=1.0, scheduled_ts=1.5, first_token_ts=2.0, last_token_ts=0)
    prompt_ids = None if prompt is None else [0] * prompt
    return SimpleNamespace(
        prompt_token_ids=prompt_ids, num_cached_tokens=cached, metrics=metrics, outputs=parts
    )


def _part(ids: list[int], finish: str | None = None, stop: Any = None, index: int = 0) -> Any:
    return SimpleNamespace(
        index=index, token_ids=ids, finish_reason=finish, stop_reason=stop, logprobs=None
    )


def _tap(*, token_groups: bool = True) -> CallTap:
    return CallTap(Call("r", "/v1/completions", b"", "m", token_groups=token_groups))


def test_usage_times_and_reasons_add_up_over_a_stream() -> None:
    tap = _tap()
    first = tap.begin(1)
    tap.saw(first, _output(_part([7])))
    tap.saw(first, _output(_part([8, 9], "stop"), prompt=None, cached=None))
    done = tap.finished()
    assert (done.prompt_tokens, done.completion_tokens, done.cached_tokens) == (5, 3, 3)
    assert (done.queue_us, done.prefill_us, done.decode_us) == (500_000, 500_000, 0)
    assert done.finish_reasons == ("stop",)
    assert tap.complete()


def test_what_a_call_cost_is_told_once_the_engine_has_had_any_of_it() -> None:
    tap = _tap()
    tap.begin(1)
    assert tap.usage() is None
    tap.entered(
        SimpleNamespace(
            request_id="r", parent_req=None, prompt_len=5, num_cached_tokens=0, detokenizer=None
        )
    )
    assert tap.usage() == Usage(prompt_tokens=5)


def test_several_prompts_number_their_choices_through() -> None:
    tap = _tap()
    firsts = [tap.begin(2), tap.begin(2)]
    tap.saw(firsts[1], _output(_part([4], "length", index=1)))
    assert tap.take_groups() == (TokenGroup(3, (4,), "length"),)
    assert not tap.complete()


def test_groups_are_handed_out_once_and_name_the_stop() -> None:
    tap = _tap()
    tap.saw(tap.begin(1), _output(_part([1, 2], "stop", stop=99)))
    assert tap.take_groups() == (TokenGroup(0, (1, 2), "stop", "99"),)
    assert tap.take_groups() == ()


def test_tokens_are_told_once() -> None:
    tap = _tap(token_groups=False)
    first = tap.begin(1)
    tap.saw(first, _output(_part([1, 2])))
    assert tap.take_tokens() == 2
    assert tap.take_tokens() == 0
    tap.saw(first, _output(_part([3], "stop")))
    assert tap.take_tokens() == 1


def test_no_groups_are_kept_when_nobody_asked() -> None:
    tap = _tap(token_groups=False)
    tap.saw(tap.begin(1), _output(_part([1])))
    assert tap.take_groups() == ()


@pytest.mark.parametrize(
    ("reason", "status", "code"),
    [("abort", 503, "engine_stopped"), ("error", 500, "engine_error")],
)
def test_what_the_engine_drops_is_no_end_and_may_be_tried_again(
    reason: str, status: int, code: str
) -> None:
    tap = _tap()
    with pytest.raises(RequestDropped):
        tap.saw(tap.begin(1), _output(_part([], reason)))
    assert not tap.complete()
    assert tap.lost is not None
    assert (tap.lost.status, tap.lost.code, tap.lost.retryable) == (status, code, True)


@pytest.mark.parametrize("field", ["", "response_format", "tools"])
def test_an_error_of_what_must_follow_a_grammar_is_the_requests_own(field: str) -> None:
    tap = _tap()
    tap.grammar_field = field
    with pytest.raises(RequestDropped):
        tap.saw(tap.begin(1, constrained=True), _output(_part([], "error")))
    assert tap.lost is not None
    assert tap.lost.param == field
    assert (tap.lost.status, tap.lost.fault, tap.lost.retryable) == (400, "client", False)


def test_an_abort_after_hanging_up_is_as_it_should_be() -> None:
    tap = _tap()
    tap.hung_up = True
    tap.saw(tap.begin(1), _output(_part([], "abort")))
    assert tap.complete()


async def _breaking(ended: list[str]) -> AsyncGenerator[str, None]:
    try:
        yield "output"
    finally:
        ended.append("breaks")
        raise KeyError("lost")


async def _ending(ended: list[str]) -> AsyncGenerator[str, None]:
    try:
        yield "output"
    finally:
        ended.append("ends")


async def test_outputs_that_cannot_be_ended_keep_no_others_in_the_engine(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.WARNING)
    tap, ended = _tap(), list[str]()
    for outputs in (_breaking(ended), _ending(ended)):
        await anext(tap.opened(outputs))
    await tap.close()
    assert ended == ["breaks", "ends"]
    assert "lost" in caplog.text


def _pooled(numbers: int) -> Any:
    data = SimpleNamespace(numel=lambda: numbers)
    return SimpleNamespace(
        error=None,
        prompt_token_ids=[0],
        num_cached_tokens=0,
        finished=True,
        outputs=SimpleNamespace(data=data),
    )


def test_a_call_ends_once_its_answer_would_hold_too_many_numbers() -> None:
    tap = _tap()
    tap.most_numbers = 100
    tap.saw_pooled(tap.begin(1), _pooled(60))
    assert tap.complete()
    with pytest.raises(RequestDropped):
        tap.saw_pooled(tap.begin(1), _pooled(60))
    assert tap.lost is not None
    assert (tap.lost.status, tap.lost.fault, tap.lost.retryable) == (400, "client", False)
    assert "120 numbers, at most 100" in tap.lost.message


def test_an_answer_that_does_not_hold_the_numbers_may_be_of_any_many() -> None:
    tap = _tap()
    tap.saw_pooled(tap.begin(1), _pooled(10**9))
    assert tap.complete()
