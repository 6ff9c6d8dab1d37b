"""The tap's figures, from outputs shaped like vLLM's."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from penstock.replica.engine import Call, TokenGroup
from penstock.replica.vllm.tap import CallTap, RequestDropped


def _output(*parts: Any, prompt: int | None = 5, cached: int | None = 3) -> Any:
    metrics = SimpleNamespace(queued_ts=1.0, scheduled_ts=1.5, first_token_ts=2.0, last_token_ts=0)
    prompt_ids = None if prompt is None else [0] * prompt
    return SimpleNamespace(
        prompt_token_ids=prompt_ids, num_cached_tokens=cached, metrics=metrics, outputs=parts
    )


def _part(ids: list[int], finish: str | None = None, stop: Any = None, index: int = 0) -> Any:
    return SimpleNamespace(index=index, token_ids=ids, finish_reason=finish, stop_reason=stop)


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


def test_an_error_of_what_must_follow_a_grammar_is_the_requests_own() -> None:
    tap = _tap()
    with pytest.raises(RequestDropped):
        tap.saw(tap.begin(1, constrained=True), _output(_part([], "error")))
    assert tap.lost is not None
    assert (tap.lost.status, tap.lost.fault, tap.lost.retryable) == (400, "client", False)


def test_an_abort_after_hanging_up_is_as_it_should_be() -> None:
    tap = _tap()
    tap.hung_up = True
    tap.saw(tap.begin(1), _output(_part([], "abort")))
    assert tap.complete()
