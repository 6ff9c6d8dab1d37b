"""A provider's settings out of engine arguments, checked once. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from typing import Final

from penstock.replica.providers import errors
from penstock.replica.providers.account import Prices
from penstock.replica.providers.fields import FEATURES
from penstock.replica.providers.requests import whole_number
from penstock.replica.values import CannotLoad

_LONGEST_MS: Final = 3_600_000
_MOST_CALLS: Final = 1000
"""That one process can have connections for."""
_DEAREST: Final = Decimal(1_000_000)
"""What is written to a cache costs so many times the input, at those that charge for it."""
_DEAREST_TIER: Final = 100
_MOST_CHOICES: Final = 128
_NO_TIER: Final = (None, "auto", "default")
_OWN_FIELD: Final = re.compile(r"field:[A-Za-z_][A-Za-z0-9_]{0,63}")
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

    def price_if_any(self, key: str) -> Decimal | None:
        """Likewise, where it is said."""
        if key in self._texts:
            return self.price(key, Decimal(0))
        self._known.append(key)
        return None

    def words(self, key: str) -> list[str]:
        """Words between commas."""
        return [word.strip() for word in self.text(key).split(",") if word.strip()]

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
class Allowed:
    """What requests may ask for that costs or reaches more than one answer of the model."""

    features: frozenset[str] = frozenset()
    tiers: Mapping[str, Decimal] = field(default_factory=dict)  # each with its factor of the prices
    most_choices: int = 8

    def choices(self, body: Mapping[str, object]) -> int:
        """How many choices a body asks for; 0: it does not say. Raises `ProviderFailed`."""
        if body.get("n") is None:
            return 0
        asked = whole_number("n", body["n"])
        if asked > self.most_choices:
            raise errors.unsupported("n", f"at most {self.most_choices} choices are made here")
        return asked

    def check_tier(self, tier: object) -> None:
        """Raises `ProviderFailed` for a service tier that has no price here."""
        if tier not in _NO_TIER and not (isinstance(tier, str) and tier in self.tiers):
            raise errors.unsupported("service_tier", "the setting service_tiers does not name it")

    def factor(self, tier: object) -> Decimal:
        """What a tier costs, in prices of the usual one."""
        return self.tiers.get(tier, Decimal(1)) if isinstance(tier, str) else Decimal(1)


@dataclass(frozen=True, slots=True)
class Common:
    """What every provider is told. Durations in seconds."""

    prices: Prices
    connect_timeout: float = 5.0
    first_event_timeout: float = 60.0  # of a stream
    answer_timeout: float = 600.0  # until all of a unary answer is there
    between_events_timeout: float = 30.0
    retries: int = 2  # before the first event only
    max_model_len: int = 0  # tokens; 0: not known
    tools: bool = True  # whether requests may bring tools
    max_calls: int = 100  # at once
    allowed: Allowed = Allowed()


def read_common(arguments: Arguments) -> Common:
    """The settings that all providers have. Raises `CannotLoad`."""
    usual = arguments.price("usd_per_million_input", Decimal(0))
    return Common(
        prices=Prices(
            input=usual,
            output=arguments.price("usd_per_million_output", Decimal(0)),
            cached=arguments.price("usd_per_million_cached", usual),
            cache_write=arguments.price_if_any("usd_per_million_cache_write"),
            cache_write_1h=arguments.price_if_any("usd_per_million_cache_write_1h"),
        ),
        connect_timeout=arguments.seconds("connect_timeout_ms", 5_000),
        first_event_timeout=arguments.seconds("first_event_timeout_ms", 60_000),
        answer_timeout=arguments.seconds("answer_timeout_ms", 600_000),
        between_events_timeout=arguments.seconds("between_events_timeout_ms", 30_000),
        retries=arguments.count("retries", 2, 10),
        max_model_len=arguments.count("max_model_len", 0, 1_000_000_000),
        tools=arguments.truth("tools", True),
        max_calls=arguments.number("max_calls", 100, _MOST_CALLS),
        allowed=Allowed(
            features=_features(arguments),
            tiers=_tiers(arguments),
            most_choices=arguments.number("max_choices", 8, _MOST_CHOICES),
        ),
    )


def _features(arguments: Arguments) -> frozenset[str]:
    words = arguments.words("provider_features")
    for word in words:
        if word not in FEATURES and not _OWN_FIELD.fullmatch(word):
            raise CannotLoad(
                f"provider_features names {word!r}: it may name {', '.join(FEATURES)}, and "
                "field:NAME for one more field that is passed on"
            )
    return frozenset(words)


def _tiers(arguments: Arguments) -> dict[str, Decimal]:
    tiers = {}
    for word in arguments.words("service_tiers"):
        name, _, factor = word.partition(":")
        try:
            tiers[name] = Decimal(factor)
        except InvalidOperation:
            tiers[name] = Decimal("NaN")
        if not name or not tiers[name].is_finite() or not 0 < tiers[name] <= _DEAREST_TIER:
            raise CannotLoad(
                f"service_tiers names {word!r}: each is a tier and its factor of the prices, such "
                "as flex:0.5"
            )
    return tiers
