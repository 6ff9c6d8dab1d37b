"""Budgets: which there may be, and what uses them up."""

from __future__ import annotations

from datetime import timedelta

import pytest

from penstock.control.errors import InvalidSpec
from penstock.control.state.tenancy.spend import (
    MOST_USD,
    Budgets,
    Spend,
    Spending,
    is_used_up,
    spending_at,
)
from tests.fakes.control_values import NOON


@pytest.mark.parametrize(
    ("usd", "tokens", "words"),
    [
        (-0.01, 0, "budget_usd_per_day is -0.01"),
        (float("nan"), 0, "budget_usd_per_day is nan"),
        (float("inf"), 0, "budget_usd_per_day is inf"),
        (MOST_USD + 1, 0, "budget_usd_per_day is 9000001"),
        (0, -1, "budget_tokens_per_day is -1"),
        (0, 2**53, "budget_tokens_per_day is 9007199254740992"),
    ],
)
def test_a_budget_that_cannot_be_is_refused(usd: float, tokens: int, words: str) -> None:
    with pytest.raises(InvalidSpec, match=words):
        Budgets(usd, tokens)


@pytest.mark.parametrize(
    ("budgets", "spent", "used_up"),
    [
        (Budgets(), Spend(9, 10**9, 10**9, 10**15), False),
        (Budgets(usd_per_day=0.5), Spend(nanousd=499_999_999), False),
        (Budgets(usd_per_day=0.5), Spend(nanousd=500_000_000), True),
        (Budgets(usd_per_day=0.5), Spend(1, 10**9, 10**9), False),
        (Budgets(tokens_per_day=10), Spend(1, 4, 5), False),
        (Budgets(tokens_per_day=10), Spend(1, 4, 6), True),
        (Budgets(0.5, 10), Spend(1, 4, 6), True),
        (Budgets(0.5, 10), Spend(nanousd=10**9), True),
    ],
)
def test_a_budget_is_used_up_by_the_last_of_it(
    budgets: Budgets, spent: Spend, used_up: bool
) -> None:
    assert is_used_up(budgets, spent) == used_up
    found = spending_at(NOON, [("mini", budgets)], {"mini": spent, "other": spent})
    assert found.used_up == ({"mini"} if used_up else set())


def test_budgets_begin_anew_at_midnight_utc() -> None:
    midnight = int((NOON + timedelta(hours=12)).timestamp() * 1000)
    assert spending_at(NOON, [], {}).resets_at_ms == midnight
    assert spending_at(NOON + timedelta(hours=12), [], {}).resets_at_ms == midnight + 86_400_000
    assert Spending().resets_at_ms == 0


def test_what_is_spent_is_told_in_tokens_and_dollars() -> None:
    spent = Spend(3, 31, 13, 2_000_000_005)
    assert (spent.tokens, spent.usd) == (44, 2.000000005)
