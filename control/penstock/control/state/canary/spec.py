"""What a canary may say: whose clients, to which candidate, in which steps, held to what. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final

from penstock.control.declared.fields import Form, check, inner, said, setting
from penstock.control.errors import InvalidInput

WHOLE: Final = 1000  # permille
MOST_STEPS: Final = 20
MOST_SESSIONS: Final = 10_000_000
LONGEST_SECONDS: Final = 30 * 86_400

NAMES: Final = (
    "it must be 1 to 63 of a-z, 0-9, '.', '_' and '-', beginning and ending with a letter or digit"
)
_NAME: Final = re.compile(r"[a-z0-9]([a-z0-9._-]{0,61}[a-z0-9])?")


def is_name(text: str) -> bool:
    """Whether a canary may be called so; `NAMES` tells what may be."""
    return bool(_NAME.fullmatch(text))


@dataclass(frozen=True, slots=True)
class Target:
    """Whose clients are shared."""

    deployment: str
    alias: str = ""  # of it; empty: those of the deployment itself

    def __str__(self) -> str:
        """As clients name it."""
        return f"{self.deployment}:{self.alias}" if self.alias else self.deployment


def parsed_target(text: str) -> Target:
    """`deployment` or `deployment:alias`. Raises InvalidInput."""
    deployment, colon, alias = text.partition(":")
    if not deployment or (colon and not alias) or "@" in alias:
        raise InvalidInput(
            f"target is {text!r}: name a deployment, or an alias as deployment:alias"
        )
    return Target(deployment, alias)


@dataclass(frozen=True, slots=True)
class Step:
    """One share, and what has to be seen of it before the next."""

    permille: int = field(
        metadata=said("share of the sessions, in {unit}", unit="thousandths", ge=1, le=WHOLE)
    )
    min_sessions: int = setting(
        "{unit} that each arm has to have", 100, unit="sessions", ge=1, le=MOST_SESSIONS
    )
    min_seconds: int = setting(
        "{unit} that it stands at least", 60, unit="seconds", ge=0, le=LONGEST_SECONDS
    )


DEFAULT_STEPS: Final = (Step(10), Step(50), Step(250), Step(500), Step(WHOLE))


@dataclass(frozen=True, slots=True)
class ErrorsGuard:
    """Sessions of which any request broke."""

    ratio: float = setting(
        "how many times as many as the stable arm's are tolerated", 1.5, ge=1, le=100
    )
    margin: float = setting(
        "{unit} more than the stable arm's that may go on: `ratio` alone rolls back",
        0.01,
        unit="share",
        ge=0.001,
        le=1,
    )


def _margin(default: float) -> Any:
    return setting("{unit} more than the stable arm's", default, unit="share", ge=0.001, le=1)


@dataclass(frozen=True, slots=True)
class FinishGuard:
    """Sessions whose first whole answer was cut, filtered, or empty."""

    margin: float = _margin(0.02)


@dataclass(frozen=True, slots=True)
class TimeGuard:
    """Sessions slower than half, and than nine tenths, of the stable arm's."""

    margin: float = _margin(0.05)


@dataclass(frozen=True, slots=True)
class Guards:
    """What the candidate is held to, always beside the stable arm at the same time."""

    errors: ErrorsGuard = inner(ErrorsGuard, prefix="errors.")
    finish: FinishGuard = inner(FinishGuard, prefix="finish.")
    ttft: TimeGuard = inner(TimeGuard, prefix="ttft.")
    between_tokens: TimeGuard = inner(TimeGuard, prefix="between_tokens.")
    total: TimeGuard = inner(TimeGuard, prefix="total.")
    warmup_requests: int = setting(
        "first {unit} of each replica, whose times are not counted: its caches are cold",
        20,
        unit="requests",
        ge=0,
        le=10_000,
    )


@dataclass(frozen=True, slots=True)
class CanarySpec:
    """What an operator asks for. Raises InvalidInput."""

    name: str = field(metadata=said(examples=("chat-next",)))
    target: Target = field(
        metadata=said(
            "deployment, or deployment:alias, whose clients are shared",
            form=Form(str, parsed_target),
            examples=("chat",),
        )
    )
    candidate: str = setting(
        "deployment, or for an alias name@version, that the share goes to; empty: each new"
        " revision of the deployment, whose settings name this canary as update.canary",
        "",
        examples=("chat-int8",),
    )
    steps: tuple[Step, ...] = setting(
        "shares in their order, each larger than the one before",
        DEFAULT_STEPS,
        most=MOST_STEPS,
        shape="PERMILLE[:SESSIONS[:SECONDS]],...",
    )
    guards: Guards = inner(Guards, prefix="guards.")
    shadow: str = setting(
        "shadow whose verdict has to be equal or better before each next step, and whose worse"
        " rolls back; empty: none",
        "",
    )

    def __post_init__(self) -> None:
        """Refuses what could never be carried out."""
        if not is_name(self.name):
            raise InvalidInput(f"name is {self.name!r}: {NAMES}")
        check(self.guards, within="guards.")
        for guard in ("errors", "finish", "ttft", "between_tokens", "total"):
            check(getattr(self.guards, guard), within=f"guards.{guard}.")
        for step in self.steps:
            check(step, within="steps.")
        if not self.steps:
            raise InvalidInput("steps is empty: name one share at least, or leave it out")
        shares = [step.permille for step in self.steps]
        if any(one >= other for one, other in pairwise(shares)):
            raise InvalidInput(f"steps has permille {shares}: each is larger than the one before")
        if bool(self.target.alias) and "@" not in self.candidate:
            raise InvalidInput(
                f"candidate is {self.candidate!r}: for the alias {self.target} name a version,"
                " name@version"
            )
        if not self.target.alias and "@" in self.candidate:
            raise InvalidInput(
                f"candidate is {self.candidate!r}, and target {self.target} is a deployment: name"
                " another deployment, or an alias as target"
            )
