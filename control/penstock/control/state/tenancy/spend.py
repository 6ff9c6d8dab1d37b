"""What deployments cost by day, and the budgets that they have. Pure.

Nothing is counted here: what a deployment cost is the sum of its rows of usage, which are counted
by the rules of `usage.py`. So reports that are lost, doubled or late, and processes that restart,
change no sum; and a deployment that is deleted and made anew has spent what its name has spent.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any, NamedTuple

from penstock.control.declared.fields import check, setting
from penstock.control.errors import InvalidSpec
from penstock.control.state.tenancy.usage import Counts, midnight_after

NANO = 1_000_000_000  # billionths of a US dollar in one
MOST_USD = 9_000_000  # what one count of billionths can hold
MOST_TOKENS = 2**53 - 1  # what JSON carries exactly


def usd(text: str, default: float | None = 0.0, **more: Any) -> Any:
    """A field of US dollars."""
    return setting(text, default, unit="US dollars", ge=0, le=MOST_USD, **more)


@dataclass(frozen=True, slots=True)
class Budgets:
    """What a deployment may cost from midnight to midnight UTC, at all gateways together; 0: no
    limit. Raises InvalidSpec."""

    usd_per_day: float = usd(
        "{unit} from midnight to midnight UTC, at all gateways together, after"
        " which it takes no more requests until midnight; 0: no budget",
        name="budget_usd_per_day",
    )
    tokens_per_day: int = setting(
        "likewise, of prompts and answers together; 0: no budget",
        0,
        name="budget_tokens_per_day",
        unit="tokens",
        ge=0,
        le=MOST_TOKENS,
    )

    def __post_init__(self) -> None:
        check(self, InvalidSpec)

    def __bool__(self) -> bool:
        return bool(self.usd_per_day or self.tokens_per_day)


class Spend(NamedTuple):
    """What a deployment had on one day."""

    requests: int = 0  # that went to a replica
    prompt_tokens: int = 0
    completion_tokens: int = 0
    nanousd: int = 0  # billionths of a US dollar

    @property
    def tokens(self) -> int:
        """What a budget counts."""
        return self.prompt_tokens + self.completion_tokens

    @property
    def usd(self) -> float:
        """For people."""
        return self.nanousd / NANO

    @property
    def counts(self) -> Counts:
        """As usage counts it."""
        return Counts(
            requests=self.requests,
            prompt_tokens=self.prompt_tokens,
            completion_tokens=self.completion_tokens,
            cost_nanousd=self.nanousd,
        )


@dataclass(frozen=True, slots=True)
class SpendRow:
    """What one deployment had on one day."""

    day: date  # of UTC
    deployment: str
    spend: Spend


@dataclass(frozen=True, slots=True)
class Spending:
    """What follows from the clock and from what was spent; never stored."""

    day: date | None = None  # of UTC
    used_up: frozenset[str] = frozenset()  # deployments that have had a budget of the day

    @property
    def resets_at_ms(self) -> int:
        """When budgets begin anew, in milliseconds since 1970; 0: nobody looked at the clock."""
        return midnight_after(self.day) if self.day else 0


def is_used_up(budgets: Budgets, spent: Spend) -> bool:
    """Whether one of them is."""
    by_money = 0 < budgets.usd_per_day * NANO <= spent.nanousd
    return by_money or 0 < budgets.tokens_per_day <= spent.tokens


def spending_at(
    now: datetime, budgets: Iterable[tuple[str, Budgets]], spent: Mapping[str, Spend]
) -> Spending:
    """What holds now, with what deployments have spent since midnight."""
    used_up = (name for name, of in budgets if is_used_up(of, spent.get(name, Spend())))
    return Spending(now.astimezone(UTC).date(), frozenset(used_up))
