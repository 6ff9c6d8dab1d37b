"""What a shadow may say: whose requests are repeated where, how many, for how long. Pure values."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Final

from penstock.control.declared.fields import PAIRS, Form, check, inner, said, setting
from penstock.control.errors import InvalidInput
from penstock.control.state.shadow.guardrails import check_guardrails
from penstock.control.state.tenancy.spend import usd

MOST_PERMILLE: Final = 1000
MOST_CONCURRENT: Final = 1000
MOST_PER_MINUTE: Final = 1_000_000
MOST_PAIRS: Final = 100_000_000
MOST_NAMES: Final = 1000
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


@dataclass(frozen=True, slots=True)
class Until:
    """When a shadow ends by itself: at least one of the two, or never."""

    pairs: int = setting("that are counted; 0: any number", 0, unit="pairs", ge=0, le=MOST_PAIRS)
    at: datetime | None = setting("a time with its zone", None)


@dataclass(frozen=True, slots=True)
class ShadowSpec:
    """What an operator asks for. Raises InvalidInput."""

    name: str = field(metadata=said(examples=("bigger-model",)))
    primary: Primary = field(
        metadata=said(
            "deployment, or deployment:alias, whose requests are repeated",
            form=Form(str, parsed_primary),
            examples=("chat",),
        )
    )
    candidate: Candidate = field(
        metadata=said(
            "deployment, or deployment:name@version, that they are repeated to; the "
            "primary itself: an A/A run, which has to come out equal",
            form=Form(str, parsed_candidate),
            examples=("chat-int8",),
        )
    )
    share_permille: int = field(
        metadata=said(
            "of the requests, in {unit}",
            unit="thousandths",
            ge=1,
            le=MOST_PERMILLE,
            examples=(100,),
        )
    )
    sample: Sample = setting("session: all of its requests, or none", Sample.REQUEST)
    tenants: tuple[str, ...] = setting("empty: all that allow it", (), most=MOST_NAMES)
    endpoints: tuple[str, ...] = setting(
        f"empty: {', '.join(ENDPOINTS)}, which are all there are", (), most=MOST_NAMES
    )
    max_concurrent: int = setting(
        "repeated at a time, by each gateway", 4, unit="requests", ge=1, le=MOST_CONCURRENT
    )
    max_per_minute: int = setting(
        "likewise; 0: any number", 0, unit="requests", ge=0, le=MOST_PER_MINUTE
    )
    until: Until = inner(Until, prefix="until_")
    record: Record = setting(
        "of prompts and answers of pairs that count, for the report's worst pairs, "
        "which operators see. none: numbers alone are kept; redacted: without personal data and "
        "secrets; full: as they are",
        Record.NONE,
    )
    checks: tuple[str, ...] = setting(
        "that the verdict goes by; empty: the usual ones. The others are shown. There "
        f"are {', '.join(CHECKS)}; with an embedder semantic, with a judge judge",
        (),
        most=MOST_NAMES,
    )
    margins: tuple[tuple[str, float], ...] = setting(
        "by check: how much worse is too much, where it is not the usual one", (), form=PAIRS
    )
    guardrails: tuple[tuple[str, str], ...] = setting(
        "regular expressions that no answer may hold, by name, beside those of personal"
        " data: what the check guardrails looks for",
        (),
        form=PAIRS,
    )
    self_permille: int | None = setting(
        "of those that are repeated, in {unit}: the primary is asked again, too. "
        f"null: {MANY_SELF} until there are {ENOUGH_SELF} such pairs, then {FEW_SELF}",
        None,
        unit="thousandths",
        ge=0,
        le=MOST_PERMILLE,
    )
    usd_per_day: float = usd("what it may cost; 0: no limit, which a provider has to have")
    embedder: str = setting(
        "deployment that is asked what answers mean, for the check semantic, which is "
        "shown; empty: none is. A provider is asked only what a provider may answer",
        "",
        examples=("penstock-embed",),
    )
    judge: str = setting(
        "deployment that is asked which of two answers is better, in both orders, for "
        "the check judge, which the verdict goes by; empty: none is. A provider likewise",
        "",
        examples=("big-model",),
    )

    def __post_init__(self) -> None:
        check_name(self.name)
        check(self)
        check(self.until, within="until.")
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


def check_name(name: str) -> None:
    """Raises InvalidInput for what no shadow and no recording may be called."""
    if not _NAME.fullmatch(name):
        raise InvalidInput(
            f"name is {name!r}: it must be 1 to 63 of a-z, 0-9, '.', '_' and '-', "
            "beginning and ending with a letter or digit"
        )


def check_once(what: str, names: tuple[str, ...]) -> None:
    """Raises InvalidInput for a list that names something twice."""
    for name in names:
        if names.count(name) > 1:
            raise InvalidInput(f"{what} has {name!r} twice: keep one")
