"""What one call has cost: what the provider told, and until it does an estimate. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import ROUND_HALF_UP, Decimal
from typing import Final

from penstock.replica.values import Call, Finished, Usage

_BYTES_PER_TOKEN: Final = 4
_ONE_TOKEN: Final = 8
"""Bytes of a piece that may well be one token: many providers send each by itself."""
_NANOUSD_PER_TOKEN: Final = 1000
"""Of a price of one US dollar per million tokens."""
_WORKED_ON: Final = (408, 424)
"""Statuses of the client's by name, that tell of a model which took too long or failed."""
_MOST_TOKENS: Final = 100_000_000
"""Of one call; no model has such a context."""
_NOTHING: Final = Usage()
_NANO: Final = 1_000_000_000
_WRITES: Final = Decimal("1.25")
_WRITES_1H: Final = Decimal(2)


@dataclass(frozen=True, slots=True)
class Prices:
    """US dollars per million tokens."""

    input: Decimal = Decimal(0)
    output: Decimal = Decimal(0)
    cached: Decimal = Decimal(0)  # of prompt tokens that the provider had kept
    cache_write: Decimal | None = None  # of those that it keeps from now on; None: 1.25 times input
    cache_write_1h: Decimal | None = None  # of those that it keeps for an hour; None: 2 times input
    factor: Decimal = Decimal(1)  # of all of them, for the service tier

    def of(self, call: Call) -> Prices:
        """With those that the call brings, if it brings any."""
        if not (call.input_price or call.output_price or call.cached_price):
            return self
        return replace(
            self,
            input=Decimal(call.input_price) / _NANO,
            output=Decimal(call.output_price) / _NANO,
            cached=Decimal(call.cached_price) / _NANO,
        )

    def nanousd(self, usage: Usage, written: int = 0, written_1h: int = 0) -> int:
        """What so many tokens cost; `written` to a cache, and for an hour, are some of the
        prompt's."""
        plain = usage.prompt_tokens - usage.cached_tokens - written - written_1h
        write, write_1h = self.cache_write, self.cache_write_1h
        millionths = (
            self.input * plain
            + self.cached * usage.cached_tokens
            + (self.input * _WRITES if write is None else write) * written
            + (self.input * _WRITES_1H if write_1h is None else write_1h) * written_1h
            + self.output * usage.completion_tokens
        )
        nanousd = millionths * self.factor * _NANOUSD_PER_TOKEN
        return int(nanousd.to_integral_value(ROUND_HALF_UP))


def estimated_tokens(size: int) -> int:
    """Tokens of a text of so many bytes, of any model; at least one where there is any."""
    return -(-size // _BYTES_PER_TOKEN)


def count(value: object) -> int:
    """Tokens as a provider tells them; what can be no number of tokens is 0."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        return 0
    return value if 0 < value <= _MOST_TOKENS else 0


class Account:
    """Costs of one attempt at a call. Nothing until it was `sent`: from then on the provider may
    work on it, and charge for it, whether it answers or not.

    `prompt`: its tokens, estimated. `before`: what earlier attempts at the call have cost.
    """

    def __init__(self, prices: Prices, prompt: int, before: Usage = _NOTHING) -> None:
        self.sent = False
        self.begun = False
        self.finish_reasons: dict[int, str] = {}  # by choice
        self.provider_request_id = ""
        self._prices = prices
        self._prompt = prompt
        self._before = before
        self._made = 0
        self._told: Usage | None = None
        self._written = 0, 0  # tokens of the prompt, to a cache and to one for an hour

    def refused(self, status: int) -> None:
        """The provider turned the attempt away with this status: it has not worked on it."""
        if 300 <= status < 500 and status not in _WORKED_ON:
            self.sent = False

    def made(self, size: int) -> int:
        """The answer grew by so many bytes of text; returns how many tokens they are taken for."""
        tokens = estimated_tokens(size) if size > _ONE_TOKEN else min(size, 1)
        self._made += tokens
        return tokens

    def tell(
        self, prompt: int, completion: int, cached: int = 0, written: int = 0, written_1h: int = 0
    ) -> int:
        """The provider told what it charges, `written` to a cache and for an hour being some of the
        prompt's as `cached` are; returns the tokens made beyond those estimated."""
        more = max(0, completion - self._made)
        self._made += more
        cached = min(cached, prompt)
        written_1h = min(written_1h, prompt - cached)
        self._told = Usage(prompt, completion, cached)
        self._written = min(written, prompt - cached - written_1h), written_1h
        return more

    @property
    def told(self) -> Usage | None:
        """What the provider told, without its price."""
        return self._told

    def usage(self) -> Usage:
        """The attempt's costs so far."""
        told = self._told
        if told is None:
            if not self.sent:
                return Usage()
            told = Usage(self._prompt, self._made)
        return replace(told, cost_nanousd=self._prices.nanousd(told, *self._written))

    def costs(self) -> Usage:
        """The call's costs so far: this attempt's, and those of the attempts before."""
        own, before = self.usage(), self._before
        return Usage(
            own.prompt_tokens + before.prompt_tokens,
            own.completion_tokens + before.completion_tokens,
            own.cached_tokens + before.cached_tokens,
            own.cost_nanousd + before.cost_nanousd,
        )

    def finished(self) -> Finished:
        """The call's end."""
        usage = self.costs()
        return Finished(
            prompt_tokens=usage.prompt_tokens,
            completion_tokens=usage.completion_tokens,
            cached_tokens=usage.cached_tokens,
            cost_nanousd=usage.cost_nanousd,
            finish_reasons=tuple(reason for _, reason in sorted(self.finish_reasons.items())),
            provider_request_id=self.provider_request_id,
        )
