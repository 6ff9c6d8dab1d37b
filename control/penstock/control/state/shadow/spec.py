"""What a shadow may say: whose requests are repeated where, how many, for how long. Pure values."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Final

from penstock.control.errors import InvalidInput
from penstock.control.state.shadow.guardrails import check_guardrails
from penstock.control.state.spend import MOST_USD

MOST_PERMILLE: Final = 1000
MOST_CONCURRENT: Final = 1000
MOST_PER_MINUTE: Final = 1_000_000
MOST_PAIRS: Final = 100_000_000
MANY_SELF: Final = 250  # permille, until there are `ENOUGH_SELF` such pairs
FEW_SELF: Final = 50
ENOUGH_SELF: Final = 500
ENDPOINTS: Final = ("/v1/chat/completions", "/v1/completions")
"""Whose answers the comparer can read."""
CHECKS: Final = (
    *("error", "finish_length", "empty", "refusal", "json", "tool_arguments", "tool_names"),
    *("guardrails", "ttft", "tpot", "total", "language", "similarity", "exact", "normalised"),
    *("tool_calls", "length", "tokens", "cost"),
)
"""What the comparer can check (a test holds this against what it knows)."""
UNASKED: Final = {"semantic": "an embedding deployment", "judge": "a judge"}
"""What it could check if it asked questions of its own, which it does not."""

_NAME: Final = re.compile(r"[a-z0-9]([a-z0-9._-]{0,61}[a-z0-9])?")


class Sample(StrEnum):
    """What is sampled."""

    REQUEST = "request"
    SESSION = "session"  # all requests of a conversation, or none


class Record(StrEnum):
    """What is kept of prompts and answers."""

    NONE = "none"
    REDACTED = "redacted"
    FULL = "full"


@dataclass(frozen=True, slots=True)
class Primary:
    """Whose requests are repeated."""

    deployment: str
    alias: str = ""  # of it; empty: requests for the base model

    def __str__(self) -> str:
        """As clients name it."""
        return f"{self.deployment}:{self.alias}" if self.alias else self.deployment


@dataclass(frozen=True, slots=True)
class Candidate:
    """What they are repeated to."""

    deployment: str
    adapter: str = ""  # "name@version"; empty: the base model

    def __str__(self) -> str:
        """As clients name it."""
        return f"{self.deployment}:{self.adapter}" if self.adapter else self.deployment


@dataclass(frozen=True, slots=True)
class Until:
    """When a shadow ends by itself: at least one of the two, or never."""

    pairs: int = 0  # that are counted; 0: any number
    at: datetime | None = None


@dataclass(frozen=True, slots=True)
class ShadowSpec:
    """What an operator asks for. Raises InvalidInput."""

    name: str
    primary: Primary
    candidate: Candidate
    share_permille: int
    sample: Sample = Sample.REQUEST
    tenants: tuple[str, ...] = ()  # empty: all that allow it
    endpoints: tuple[str, ...] = ()  # paths; empty: ENDPOINTS
    max_concurrent: int = 4  # of each gateway
    max_per_minute: int = 0  # likewise; 0: any number
    until: Until = field(default_factory=Until)
    checks: tuple[str, ...] = ()  # that the verdict goes by; empty: the comparer's own
    margins: tuple[tuple[str, float], ...] = ()  # by check, sorted
    guardrails: tuple[
        tuple[str, str], ...
    ] = ()  # patterns that no answer may hold, by name, sorted
    self_permille: int | None = None  # None: MANY_SELF, then FEW_SELF
    usd_per_day: float = 0.0  # of all gateways together; 0: no limit

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise InvalidInput(
                f"name is {self.name!r}: it must be 1 to 63 of a-z, 0-9, '.', '_' and '-', "
                "beginning and ending with a letter or digit"
            )
        _within("share_permille", self.share_permille, 1, MOST_PERMILLE)
        _within("max_concurrent", self.max_concurrent, 1, MOST_CONCURRENT)
        _within("max_per_minute", self.max_per_minute, 0, MOST_PER_MINUTE)
        _within("self_permille", self.self_permille or 0, 0, MOST_PERMILLE)
        _within("until.pairs", self.until.pairs, 0, MOST_PAIRS)
        _within("usd_per_day", self.usd_per_day, 0, MOST_USD)
        _once("tenants", self.tenants)
        _once("endpoints", self.endpoints)
        _once("checks", self.checks)
        for path in self.endpoints:
            if path not in ENDPOINTS:
                there = ", ".join(ENDPOINTS)
                raise InvalidInput(f"endpoints has {path!r}, which cannot be compared: {there} can")
        for name in self.checks:
            check_check("checks", name)
        for name, margin in self.margins:
            check_check("margins", name)
            if not 0 < margin < 1:
                raise InvalidInput(f"margins.{name} is {margin:g}: it must lie between 0 and 1")
        check_guardrails(self.guardrails)


def check_check(where: str, name: str) -> None:
    """Raises InvalidInput for a check that nobody makes."""
    if needs := UNASKED.get(name):
        raise InvalidInput(f"{where} has {name!r}, which needs {needs}: this version asks none")
    if name not in CHECKS:
        raise InvalidInput(f"{where} has {name!r}: there are {', '.join(CHECKS)}")


def parsed_primary(text: str) -> Primary:
    """`deployment` or `deployment:alias`."""
    deployment, _, alias = text.partition(":")
    if "@" in alias:
        raise InvalidInput(f"primary is {text!r}: name the deployment, or an alias of it")
    return Primary(deployment, alias)


def parsed_candidate(text: str) -> Candidate:
    """`deployment` or `deployment:name@version`."""
    deployment, colon, adapter = text.partition(":")
    if colon and "@" not in adapter:
        raise InvalidInput(
            f"candidate is {text!r}: an alias moves, name what it is now, {deployment}:name@version"
        )
    return Candidate(deployment, adapter)


def _within(name: str, value: float, least: int, most: int) -> None:
    if not (math.isfinite(value) and least <= value <= most):
        raise InvalidInput(f"{name} is {value}: it must be {least} to {most}")


def _once(what: str, names: tuple[str, ...]) -> None:
    for name in names:
        if names.count(name) > 1:
            raise InvalidInput(f"{what} has {name!r} twice: keep one")
