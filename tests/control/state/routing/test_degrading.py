"""Ladders: which there may be, how specs say them, and that no way leads back."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.control.errors import InvalidSpec
from penstock.control.state.routing.degrading import (
    Context,
    Degrading,
    Ladder,
    check_no_circle,
    degrading,
    said_of,
)


@pytest.mark.parametrize(
    ("said", "ladders"),
    [
        ([], ()),
        (["trim", "fallback:b", "reject"], (Ladder("", ("trim", "fallback:b", "reject")),)),
        ({"default": ["fallback:b"]}, (Ladder("", ("fallback:b",)),)),
        ({"default": []}, ()),
        (
            {"queue_full": ["fallback:b"], "default": ["reject"], "budget": []},
            (Ladder("", ("reject",)), Ladder("budget", ()), Ladder("queue_full", ("fallback:b",))),
        ),
    ],
)
def test_a_list_is_for_all_reasons_and_a_map_for_each(said: Any, ladders: tuple[Ladder]) -> None:
    found = degrading(said, "trim")
    assert (found.ladders, found.context) == (ladders, Context.TRIM)
    assert degrading(said_of(found), "trim") == found


def test_a_ladder_for_all_reasons_is_said_as_a_list() -> None:
    assert said_of(degrading({"default": ["reject"]}, "reject")) == ["reject"]
    assert said_of(Degrading()) == []


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (["retry"], "the rung 'retry': it must be trim, fallback:<deployment> or reject"),
        (["trim", "trim"], "'trim' twice"),
        (["reject", "trim"], "behind reject"),
        ([f"fallback:b{n}" for n in range(9)], "9 rungs"),
        ({"queue_fill": ["trim"]}, "near to it: queue_full"),
        ({"xyzzy": ["trim"]}, "there are scaled_to_zero"),
        ({"rate_limited": ["fallback:b"]}, "for which nothing is tried"),
        ({"": ["trim"], "default": ["trim"]}, "reason ''"),
    ],
)
def test_rungs_and_reasons_that_there_are_not_are_refused(said: Any, words: str) -> None:
    with pytest.raises(InvalidSpec) as caught:
        degrading(said, "reject")
    assert words in str(caught.value)


def test_a_context_is_trimmed_or_refused() -> None:
    with pytest.raises(InvalidSpec, match="context is 'cut': it must be one of reject, trim"):
        degrading([], "cut")


def ways(fallbacks: Mapping[str, Sequence[str]]) -> Callable[[str], Sequence[str]]:
    """Where each of these falls back to; the others nowhere."""
    return lambda name: fallbacks.get(name, ())


def test_a_circle_is_said_with_its_way() -> None:
    for known in ({"b": ["c"], "c": ["a"]}, {"b": ["x", "c"], "c": ["y", "a"], "x": ["y"]}):
        with pytest.raises(InvalidSpec, match="a -> b -> c -> a"):
            check_no_circle("a", ways({**known, "a": ["b"]}))
    check_no_circle("a", ways({"a": ["b", "c"], "b": ["c"], "c": ["nobody"]}))


def test_a_way_of_any_length_ends_or_is_found_to_be_a_circle() -> None:
    chain = {str(n): [str(n + 1)] for n in range(5000)}
    check_no_circle("0", ways(chain))
    with pytest.raises(InvalidSpec, match="0 -> 1 -> "):
        check_no_circle("0", ways({**chain, "5000": ["0"]}))


NAMES = st.sampled_from("abcdef")


@given(st.dictionaries(NAMES, st.lists(NAMES, max_size=3)), NAMES)
def test_a_circle_is_found_exactly_where_a_deployment_reaches_itself(
    fallbacks: dict[str, list[str]], name: str
) -> None:
    reached: set[str] = set()
    ahead = {*fallbacks.get(name, ())}
    while ahead:
        reached |= ahead
        ahead = {each for here in ahead for each in fallbacks.get(here, ())} - reached
    try:
        check_no_circle(name, ways(fallbacks))
        circle = []
    except InvalidSpec as refused:
        circle = str(refused).partition("circle, ")[2].partition(":")[0].split(" -> ")
    assert bool(circle) == (name in reached)
    for one, other in pairwise(circle):
        assert other in fallbacks[one]
