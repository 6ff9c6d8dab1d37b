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
from penstock.control.state.tenancy.spend import MOST_USD

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
ASKED: Final = {"semantic": "embedder", "judge": "judge"}
"""What it can check where a deployment is named to be asked, by the field that names it."""

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
    record: Record = Record.NONE  # of prompts and answers of pairs that count
    embedder: str = ""  # deployment that is asked what answers mean; empty: none
    judge: str = ""  # deployment that is asked which answer is better; empty: none

    def __post_init__(self) -> None:
        check_name(self.name)
        check_within("share_permille", self.share_permille, 1, MOST_PERMILLE)
        check_within("max_concurrent", self.max_concurrent, 1, MOST_CONCURRENT)
        check_within("max_per_minute", self.max_per_minute, 0, MOST_PER_MINUTE)
        check_within("self_permille", self.self_permille or 0, 0, MOST_PERMILLE)
        check_within("until.pairs", self.until.pairs, 0, MOST_PAIRS)
        check_within("usd_per_day", self.usd_per_day, 0, MOST_USD)
        check_once("tenants", self.tenants)
        check_once("endpoints", self.endpoints)
        check_once("checks", self.checks)
        for path in self.endpoints:
            if path not in ENDPOINTS:
                there = ", ".join(ENDPOINTS)
                raise InvalidInput(f"endpoints has {path!r}, which cannot be compared: {there} can")
        for name in self.checks:
            self._check_check("checks", name)
        for name, margin in self.margins:
            self._check_check("margins", name)
            if not 0 < margin < 1:
                raise InvalidInput(f"margins.{name} is {margin:g}: it must lie between 0 and 1")
        check_guardrails(self.guardrails)

    def _check_check(self, where: str, name: str) -> None:
        """Raises InvalidInput for a check that nobody makes."""
        if name not in (*CHECKS, *ASKED):
            raise InvalidInput(f"{where} has {name!r}: there are {', '.join((*CHECKS, *ASKED))}")
        if (field := ASKED.get(name)) and not getattr(self, field):
            raise InvalidInput(f"{where} has {name!r}, which asks a deployment: name it as {field}")

    @property
    def asked(self) -> tuple[tuple[str, str], ...]:
        """Who is asked about pairs, by the field that names it."""
        named = (("embedder", self.embedder), ("judge", self.judge))
        return tuple((field, name) for field, name in named if name)


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


def check_name(name: str) -> None:
    """Raises InvalidInput for what no shadow and no recording may be called."""
    if not _NAME.fullmatch(name):
        raise InvalidInput(
            f"name is {name!r}: it must be 1 to 63 of a-z, 0-9, '.', '_' and '-', "
            "beginning and ending with a letter or digit"
        )


def check_within(name: str, value: float, least: int, most: int) -> None:
    """Raises InvalidInput for a number that is too small or too large."""
    if not (math.isfinite(value) and least <= value <= most):
        raise InvalidInput(f"{name} is {value}: it must be {least} to {most}")


def check_once(what: str, names: tuple[str, ...]) -> None:
    """Raises InvalidInput for a list that names something twice."""
    for name in names:
        if names.count(name) > 1:
            raise InvalidInput(f"{what} has {name!r} twice: keep one")
