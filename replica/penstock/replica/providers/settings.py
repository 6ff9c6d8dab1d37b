"""A provider's settings out of engine arguments, checked once. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Final

from penstock.replica.engine import CannotLoad
from penstock.replica.providers.account import Prices

_LONGEST_MS: Final = 3_600_000
_MOST_CALLS: Final = 1000
"""That one process can have connections for."""
_DEAREST: Final = Decimal(1_000_000)
_TRUTHS: Final = {"true": True, "1": True, "false": False, "0": False}


class Arguments:
    """The engine arguments of one engine, read one by one. Each reading names a key that is known;
    `check_all_known` refuses the others."""

    def __init__(self, engine: str, texts: Mapping[str, str]) -> None:
        self._engine = engine
        self._texts = texts
        self._known: list[str] = []

    def text(self, key: str, default: str = "") -> str:
        """As it stands."""
        self._known.append(key)
        return self._texts.get(key, default)

    def count(self, key: str, default: int, most: int) -> int:
        """A whole number from 0 to `most`."""
        text = self.text(key, str(default))
        if not text.isascii() or not text.isdigit() or int(text) > most:
            raise self._wrong(key, text, f"a whole number from 0 to {most}")
        return int(text)

    def number(self, key: str, default: int, most: int) -> int:
        """A whole number from 1 to `most`."""
        number = self.count(key, default, most)
        if not number:
            raise self._wrong(key, "0", f"a whole number from 1 to {most}")
        return number

    def seconds(self, key: str, default_ms: int) -> float:
        """Milliseconds, at least 1, as seconds."""
        return self.number(key, default_ms, _LONGEST_MS) / 1000

    def truth(self, key: str, default: bool) -> bool:
        """True or false."""
        text = self.text(key, str(default).lower())
        if text.lower() not in _TRUTHS:
            raise self._wrong(key, text, "true or false")
        return _TRUTHS[text.lower()]

    def price(self, key: str, default: Decimal) -> Decimal:
        """US dollars per million tokens."""
        text = self.text(key, str(default))
        try:
            price = Decimal(text)
        except InvalidOperation:
            price = Decimal("NaN")
        if not price.is_finite() or not 0 <= price <= _DEAREST:
            raise self._wrong(key, text, f"US dollars per million tokens, from 0 to {_DEAREST}")
        return price

    def check_all_known(self) -> None:
        """Raises `CannotLoad` where there is a key that nobody has read."""
        if unknown := sorted(set(self._texts) - set(self._known)):
            known = ", ".join(self._known)
            raise CannotLoad(
                f"the {self._engine} engine has no setting {unknown[0]!r}: it knows {known}"
            )

    def _wrong(self, key: str, text: str, wanted: str) -> CannotLoad:
        return CannotLoad(f"{key} is {text!r}: it must be {wanted}")


@dataclass(frozen=True, slots=True)
class Common:
    """What every provider is told. Durations in seconds."""

    prices: Prices
    connect_timeout: float = 5.0
    first_event_timeout: float = 60.0  # of a unary answer: until all of it is there
    between_events_timeout: float = 30.0
    retries: int = 2  # before the first event only
    max_model_len: int = 0  # tokens; 0: not known
    tools: bool = True  # whether requests may bring tools
    max_calls: int = 100  # at once


def read_common(arguments: Arguments) -> Common:
    """The settings that all providers have. Raises `CannotLoad`."""
    dearest = arguments.price("usd_per_million_input", Decimal(0))
    return Common(
        prices=Prices(
            input=dearest,
            output=arguments.price("usd_per_million_output", Decimal(0)),
            cached=arguments.price("usd_per_million_cached", dearest),
        ),
        connect_timeout=arguments.seconds("connect_timeout_ms", 5_000),
        first_event_timeout=arguments.seconds("first_event_timeout_ms", 60_000),
        between_events_timeout=arguments.seconds("between_events_timeout_ms", 30_000),
        retries=arguments.count("retries", 2, 10),
        max_model_len=arguments.count("max_model_len", 0, 1_000_000_000),
        tools=arguments.truth("tools", True),
        max_calls=arguments.number("max_calls", 100, _MOST_CALLS),
    )


__all__ = ["Arguments", "Common", "read_common"]
