"""The head takes the patterns that the comparer can look for, and no others."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from penstock.control.errors import InvalidInput
from penstock.control.state.shadow.guardrails import MOST_GUARDRAILS, SHIPPED, check_guardrails
from penstock.evals.comparison.bad_check import BadCheck
from penstock.evals.comparison.checks.guardrails import Guard
from penstock.evals.comparison.personal import PERSONAL


def test_the_head_knows_the_names_of_those_that_ship() -> None:
    assert set(SHIPPED) == set(PERSONAL)


@given(
    st.text("aZ0 ._-", max_size=3) | st.sampled_from(SHIPPED),
    st.text("ab|*+?()[]{},1\\", max_size=9),
)
@example("x" * 61, "a")
@example("x", "a{1000}{1000}")
@example("x", "a" * 501)
@example("x", "a?")
@example("x", "(?P<n>a)(?P=m)")
def test_both_take_the_same(name: str, pattern: str) -> None:
    try:
        Guard.of({name: pattern})
    except BadCheck:
        with pytest.raises(InvalidInput, match="guardrails"):
            check_guardrails([(name, pattern)])
    else:
        check_guardrails([(name, pattern)])


def test_what_is_wrong_is_told_with_the_name() -> None:
    with pytest.raises(InvalidInput, match=r"guardrails\.codename is '\(': it is no regular"):
        check_guardrails([("project", "x"), ("codename", "(")])
    with pytest.raises(InvalidInput, match="guardrails has 17: there may be 16"):
        check_guardrails([(str(n), "x") for n in range(MOST_GUARDRAILS + 1)])
