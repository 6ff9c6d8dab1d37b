"""What a grammar's estimate lets through, and what it holds back."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.replica.vllm.guards.grammars import MOST, size

_THREE = """root ::= b{0,100}
b ::= c{0,100}
c ::= "a"{0,100}
"""


@pytest.mark.parametrize(
    "grammar",
    [
        _THREE,
        _THREE.replace("{", "{ ").replace(",", " , ").replace("}", " }"),
        _THREE.replace("{0,", " # }\n{ # 9\n +0 # b\n, # c\n+000000000000000"),
        'root ::= ((("a"{0,20}){0,20} | "b"){0,20})',
        "root ::= (" + "b{0,99} " * 9 + '){0,99}\nb ::= "]"{9}',
        "root ::= [^\\]{0,9}]{99} b{99}\nb ::= root{99}",
        "start: a~100..100\na: b~3..100\n",
        'root ::= "\\"" b{99}\nb ::= c{99} "x',
        'b ::= "a"{99999999999999999999}',
    ],
)
def test_repeats_within_each_other_are_above_the_limit(grammar: str) -> None:
    assert size(grammar) > MOST


@pytest.mark.parametrize(
    "grammar",
    [
        "",
        "}{",
        "::=",
        "a ::= (b",
        'root ::= "yes" | "no"',
        "root ::= [a-z]{1,20} [a-z]{1,20} [a-z]{1,20}",
        "root ::= [a-z]{1,64} uuid\nuuid ::= h{8} h{4} h{4} h{4} h{12}\nh ::= [0-9a-f]",
        'root ::= "a{99}" "b{99}" "\\"c{99}"',
        "root ::= [{99}] [{98}] [\\]{97}]",
        "root ::= a # b{99} c{99} d{99}",
        'a ::= "x" (b a){0,9}\nb ::= a{0,9}',
        "\n".join(f'r{n} ::= r{n + 1} r{n + 1} "x"{{2}}' for n in range(1000)),
    ],
)
def test_those_side_by_side_and_texts_are_below_it(grammar: str) -> None:
    assert size(grammar) <= MOST


def test_what_vllm_takes_for_lark_counts_as_nested() -> None:
    assert size("start: a~3..100\na: /x/~50\n") == 5000


@pytest.mark.parametrize("piece", ["[", '"', "{ ", "{#", "#", "{1", "(", "a ::= (", "a{9,", "a "])
@pytest.mark.parametrize("kind", ["r ::= ", ""])
def test_a_text_eight_times_as_long_takes_some_eight_times_as_long(piece: str, kind: str) -> None:
    def measured(count: int) -> float:
        return min(_seconds(kind + piece * count) for _ in range(3))

    assert measured(32_000) < 24 * measured(4_000) + 0.02


def _seconds(grammar: str) -> float:
    begin = time.thread_time()
    size(grammar)
    return time.thread_time() - begin


@given(st.text(alphabet=st.sampled_from('ab|()[]{}"\\#\n ,+019~.:=') | st.characters()))
def test_any_text_has_an_estimate(text: str) -> None:
    assert size(text) >= 0
    assert size("a ::= " + text) >= 1
