"""What tokens cost: as a deployment says; of providers, else as the arguments of their engine do.
Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from penstock.control.declared.fields import check
from penstock.control.errors import InvalidSpec
from penstock.control.state.tenancy.spend import MOST_USD, usd

INPUT, OUTPUT, CACHED = (
    "usd_per_million_input",
    "usd_per_million_output",
    "usd_per_million_cached",
)


@dataclass(frozen=True, slots=True)
class Prices:
    """US dollars for a million tokens. Raises InvalidSpec."""

    usd_per_million_input: float = usd(
        "{unit} that a million tokens of prompts cost; 0: nothing, or with a"
        " provider as its engine_args say",
    )
    usd_per_million_output: float = usd("likewise, of answers")
    usd_per_million_cached: float | None = usd(
        "likewise, of prompts that were in the prefix cache; null: as of others",
        None,
        examples=(0.025,),
    )

    def __post_init__(self) -> None:
        check(self, InvalidSpec)

    def over(self, others: Prices) -> Prices:
        """Each that is not 0, else the other one."""
        cached = self.usd_per_million_cached
        return Prices(
            self.usd_per_million_input or others.usd_per_million_input,
            self.usd_per_million_output or others.usd_per_million_output,
            others.usd_per_million_cached if cached is None else cached,
        )

    @property
    def cached(self) -> float:
        """Of a token of the prompt that was in the prefix cache."""
        if self.usd_per_million_cached is None:
            return self.usd_per_million_input
        return self.usd_per_million_cached


def provider_prices(engine_args: Iterable[tuple[str, str]]) -> Prices:
    """By which a provider's replicas reckon where they are told no others."""
    told = dict(engine_args)
    cached = told.get(CACHED)
    return Prices(
        _usd(told.get(INPUT)), _usd(told.get(OUTPUT)), None if cached is None else _usd(cached)
    )


def _usd(text: str | None) -> float:
    """Nothing, for what an older head took."""
    try:
        price = float(text or 0)
    except ValueError:
        return 0.0
    return price if math.isfinite(price) and 0 <= price <= MOST_USD else 0.0
