"""What a client is said to have: what makes no sense, and whose turn it is to pass once more."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.replica.values import Resume, TokenGroup
from penstock.replica.vllm.resume.continuation import BadResume, Begun, Bounds, Continuation

_BOUNDS = Bounds(vocabulary=100, max_tokens=8, max_model_len=20)


def _of(*groups: TokenGroup) -> Continuation:
    return Continuation(Resume(groups, len(groups), 0, 0))


def _begun(*groups: TokenGroup, prompt: int = 5) -> Begun:
    return _of(*groups).begin("r", 0, 1, prompt, _BOUNDS)


_TOKEN = TokenGroup(0, (7,))
_END = TokenGroup(0, (8,), "stop")


@pytest.mark.parametrize(
    ("groups", "told"),
    [
        ([TokenGroup(0, ())], "empty"),
        ([_END, _TOKEN], "goes on after its end"),
        ([_END, _END], "goes on after its end"),
        ([TokenGroup(0, (100,))], "ids from 100 to 100"),
        ([TokenGroup(0, (-1, 3))], "ids from -1 to 3"),
        ([TokenGroup(0, (1,) * 9)], "9 tokens, at most 8"),
        ([TokenGroup(0, (1,) * 8)], "all of its 8 tokens and no end"),
        ([TokenGroup(0, (1,) * 1_000_000)], "at most 8"),
        ([_TOKEN] * 9, "9 tokens, at most 8"),
        ([TokenGroup(0, (), "abort")], "ends by 'abort'"),
        ([TokenGroup(0, (3,), "", "word")], "names what stopped it"),
    ],
)
def test_groups_that_no_engine_made_are_refused(groups: list[TokenGroup], told: str) -> None:
    with pytest.raises(BadResume, match=told):
        _begun(*groups)


def test_a_choice_that_fills_the_context_has_to_have_an_end() -> None:
    with pytest.raises(BadResume, match="all of its 5 tokens"):
        _begun(*[_TOKEN] * 5, prompt=15)
    assert _begun(*[_TOKEN] * 4, TokenGroup(0, (1,), "length"), prompt=15).is_over()


@pytest.mark.parametrize("choice", [-1, 3, 1 << 31])
def test_a_choice_that_the_answer_does_not_have_is_refused(choice: int) -> None:
    continuation = _of(TokenGroup(choice, (1,)))
    continuation.begin("one", 0, 2, 5, _BOUNDS)
    continuation.begin("two", 2, 1, 5, _BOUNDS)
    with pytest.raises(BadResume, match=f"choice {choice} is not one of the answer's 3"):
        continuation.check_whole()


def test_no_more_can_have_been_cached_than_the_prompts_have() -> None:
    continuation = Continuation(Resume((), 0, 0, cached_tokens=11))
    continuation.begin("one", 0, 1, 5, _BOUNDS)
    continuation.begin("two", 1, 1, 5, _BOUNDS)
    with pytest.raises(BadResume, match="11 of 10 prompt tokens"):
        continuation.check_whole()


def test_requests_know_their_choices_tokens_and_ends() -> None:
    groups = [TokenGroup(2, (1,)), TokenGroup(0, (2, 3)), TokenGroup(2, (4,), "stop")]
    continuation = _of(*groups)
    first = continuation.begin("first", 0, 2, 5, _BOUNDS)
    second = continuation.begin("second", 2, 1, 5, _BOUNDS)
    assert (first.ids(0), first.ids(1), first.finished()) == ([2, 3], [], set())
    assert (second.ids(0), second.is_over(), first.is_over()) == ([1, 4], True, False)
    assert [place for place, _ in second.groups] == [0, 2]
    assert (continuation.is_first(second), continuation.is_first(first)) == (True, False)
    assert not continuation.is_over()


async def _passes(continuation: Continuation, request: Begun, order: list[Any]) -> None:
    for place, group in request.groups:
        await continuation.turn(place)
        order.append(group)
        await asyncio.sleep(0)
        continuation.passed()
    await continuation.turn(len(continuation.resume.groups))
    order.append(None)


@given(st.lists(st.integers(0, 3), min_size=1, max_size=12))
def test_what_was_delivered_passes_in_its_order_and_before_anything_new(choices: list[int]) -> None:
    groups = [TokenGroup(choice, (place,)) for place, choice in enumerate(choices)]
    continuation = _of(*groups)
    bounds = Bounds(vocabulary=100, max_tokens=50, max_model_len=100)
    requests = [continuation.begin(str(one), one, 1, 5, bounds) for one in range(4)]
    order: list[Any] = []

    async def run() -> None:
        await asyncio.gather(*(_passes(continuation, one, order) for one in reversed(requests)))

    asyncio.run(run())
    assert order == [*groups, None, None, None, None]


def test_the_engine_reads_the_tokens_of_a_choice_once_and_of_one_that_ended_never() -> None:
    groups = [TokenGroup(choice, (1, 2, 3)) for choice in (0, 1, 2, 3)]
    begun = _of(*groups, TokenGroup(3, (4,), "stop")).begin("r", 0, 4, 5, _BOUNDS)
    assert begun.read_each() == 9 // 4
