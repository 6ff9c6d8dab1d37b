"""What a pattern's estimate lets through, and what it holds back."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.replica.vllm.guards.patterns import MOST, size

_H = "[0-9a-fA-F]{1,4}"
_IPV4 = r"((25[0-5]|(2[0-4]|1{0,1}[0-9]){0,1}[0-9])\.){3,3}(25[0-5]|(2[0-4]|1{0,1}[0-9]){0,1}[0-9])"
_IPV6 = (
    f"(({_H}:){{7,7}}{_H}|({_H}:){{1,7}}:|({_H}:){{1,6}}:{_H}|({_H}:){{1,5}}(:{_H}){{1,2}}"
    f"|({_H}:){{1,4}}(:{_H}){{1,3}}|({_H}:){{1,3}}(:{_H}){{1,4}}|({_H}:){{1,2}}(:{_H}){{1,5}}"
    f"|{_H}:((:{_H}){{1,6}})|:((:{_H}){{1,7}}|:)|fe80:(:[0-9a-fA-F]{{0,4}}){{0,4}}%[0-9a-zA-Z]{{1,}}"
    f"|::(ffff(:0{{1,4}}){{0,1}}:){{0,1}}{_IPV4}|({_H}:){{1,4}}:{_IPV4})"
)


@pytest.mark.parametrize(
    "pattern",
    [
        "((a{0,100}){0,100}){0,100}",
        "((a{0,20}){0,20}){0,20}",
        "(a{0,1000}){0,1000}",
        "(.*)*" * 3,
        r"(\w+\s?){1,200}",
        r"(?:\w+\s?){1,100}",
        "a?" * 400,
        "(?<name>(a{0,99}){0,99}|b){99}",
        "((((a{9}){9}){9}){9}){9}{9}",
        "a{99999999999999999999}",
        "(" * 200 + "a" + ")" * 200,
        r"([\w-]+\w ){1,200}",
        r"(\w+\b\w*){1,200}",
        r"(?:(?:ab?|abc?){1,9}){1,1500}",
        r"(?:[^\n]*\s){1,300}",
        r"(?:\p{L}+\w){1,300}",
    ],
)
def test_a_pattern_that_holds_an_engine_is_above_the_limit(pattern: str) -> None:
    assert size(pattern) > MOST


@pytest.mark.parametrize(
    "pattern",
    [
        "",
        "(",
        ")*{}|?",
        "yes|no",
        "a{0,10000}",
        r"[\s\S]{0,2000}",
        r"(\w+\s?){1,50}",
        r"(\w+ ?)*",
        ".*a.*b.*c.*d.*e.*f",
        "((a|b)*(a|c)*)*",
        "(a{0,30}){0,30}",
        r"(\d{1,3}\.){3}\d{1,3}",
        r"(\w+ ){1,100}",
        r"^(?:[^\n]{1,80}\n){1,20}$",
        r"(?:[a-z]{1,20}[,;] ?){1,500}",
        _IPV6,
        r"[\]{9}a]{3}\{9\}",
        r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?(Z|[+-]\d{2}:\d{2})",
        r"^[\w.+-]+@[\w-]+(\.[\w-]+)+$",
        r"([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.){1,10}[a-z]{2,20}",
        "|".join(f"word{number}" for number in range(5000)),
    ],
)
def test_an_ordinary_pattern_is_below_it(pattern: str) -> None:
    assert size(pattern) <= MOST


def test_a_classs_brackets_and_an_escape_are_one_place() -> None:
    assert size(r"[(a|b)*]\(\u0041\x41\p{L}") == 5


@pytest.mark.parametrize("piece", ["[", r"\p{", "{1", "{1,", "(?<a", "[\\", "(", "a{", "a|", "[^"])
def test_a_text_eight_times_as_long_takes_some_eight_times_as_long(piece: str) -> None:
    def measured(count: int) -> float:
        return fastest(lambda: size(piece * count))

    assert measured(32_000) < 24 * measured(4_000) + 0.02


def test_digits_without_an_end_are_read_once() -> None:
    assert fastest(lambda: size("a" + "{1" * 9 + "1" * 100_000)) < 2


def test_leading_zeros_hide_no_count() -> None:
    assert size("(a?){000000000000000000999}") > MOST


def fastest(work: Callable[[], object]) -> float:
    """Seconds of this thread that the work takes, of three runs the quickest."""
    return min(_seconds(work) for _ in range(3))


def _seconds(work: Callable[[], object]) -> float:
    begin = time.thread_time()
    work()
    return time.thread_time() - begin


@given(st.text(alphabet=st.sampled_from("ab|()[]{}\\?*+^,0159<=!:pP ") | st.characters()))
def test_any_text_has_an_estimate(text: str) -> None:
    assert size(text) >= 0
