"""What is tried for a request that a deployment cannot answer, before it is refused. Pure.

A ladder is a list of rungs, taken in order: `trim` shortens the prompt, `fallback:<deployment>`
asks another deployment, `reject` ends it. A deployment has one ladder for each reason that it names
and one for all others. Only the ladder of the deployment that was asked for counts; it may name a
deployment that is not there yet, which is passed over until it is.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from penstock.control.declared.fields import Form, chosen, setting
from penstock.control.errors import InvalidSpec

TRIM = "trim"
REJECT = "reject"
FALLBACK = "fallback:"
OTHERS = "default"
"""How specs name the reasons that have no ladder of their own; here and in routes: empty."""

MOST_RUNGS = 8
REASONS = (
    "scaled_to_zero",
    "deployment_failed",
    "no_ready_replica",
    "model_loading",
    "memory_pressure",
    "token_budget_exceeded",
    "queue_full",
    "wait_exceeded",
    "queue_deadline",
    "context_length_exceeded",
    "engine_dead",
    "budget",
    "upstream_failed",
)
"""What x-penstock-drop-reason says of a deployment, and why a call may end before its first
event."""

NOBODYS = ("draining", "gateway_full", "rate_limited", "quota")
"""What it says of a gateway or a tenant: another deployment would be no way round that."""

Said = Sequence[str] | Mapping[str, Sequence[str]]
"""A ladder for all reasons, or ladders by reason, as specs have them."""


class Context(StrEnum):
    """What becomes of a prompt beyond the model's context."""

    REJECT = "reject"
    TRIM = "trim"  # it loses its oldest turns


@dataclass(frozen=True, slots=True)
class Ladder:
    """What is tried for one reason. Raises InvalidSpec for rungs that there are not."""

    reason: str  # of REASONS; empty: all that have none of their own
    rungs: tuple[str, ...]

    def __post_init__(self) -> None:
        if self.reason in NOBODYS:
            raise InvalidSpec(
                f"degrade has the reason {self.reason!r}, for which nothing is tried: it is the"
                " gateway's or the tenant's, whatever deployment answers"
            )
        if self.reason and self.reason not in REASONS:
            near = difflib.get_close_matches(self.reason, REASONS, n=2, cutoff=0.5)
            known = f"near to it: {', '.join(near)}" if near else f"there are {', '.join(REASONS)}"
            raise InvalidSpec(
                f"degrade has the reason {self.reason!r}, which there is not; {known}; {OTHERS!r}"
                " stands for all others"
            )
        for rung in self.rungs:
            if rung not in (TRIM, REJECT) and not rung.startswith(FALLBACK):
                raise InvalidSpec(
                    f"degrade has the rung {rung!r}: it must be trim, fallback:<deployment> or"
                    " reject"
                )
            if self.rungs.count(rung) > 1:
                raise InvalidSpec(f"degrade has the rung {rung!r} twice in one ladder: keep one")
        if REJECT in self.rungs[:-1]:
            raise InvalidSpec("degrade has rungs behind reject, which ends a ladder: put it last")
        if len(self.rungs) > MOST_RUNGS:
            raise InvalidSpec(f"degrade has {len(self.rungs)} rungs in one ladder: {MOST_RUNGS}")

    @property
    def fallbacks(self) -> tuple[str, ...]:
        """The deployments that it names, in order."""
        return tuple(r.removeprefix(FALLBACK) for r in self.rungs if r.startswith(FALLBACK))


def _ladders(by_reason: Mapping[str, Sequence[str]]) -> tuple[Ladder, ...]:
    ladders = (Ladder(reason, tuple(rungs)) for reason, rungs in by_reason.items())
    return tuple(sorted(ladders, key=lambda each: each.reason))


def _context(name: str) -> Context:
    return chosen(Context, "context", name, InvalidSpec)


@dataclass(frozen=True, slots=True)
class Degrading:
    """All ladders of a deployment, and what becomes of prompts that are too long for its model."""

    ladders: tuple[Ladder, ...] = setting(  # sorted by reason
        "what is tried, in this order, for a request that it cannot answer: trim,"
        " fallback:<deployment>, reject; or such a list by reason, with default for the others:"
        f" {', '.join(REASONS)}",
        (),
        name="degrade",
        shape="trim,fallback:NAME,reject or JSON",
        form=Form(lambda ladders: {each.reason: list(each.rungs) for each in ladders}, _ladders),
        examples=(["fallback:cloud", "fallback:sorry"], {"default": ["fallback:cloud"]}),
    )
    context: Context = setting(
        "what becomes of a prompt beyond the model's context: refused, or without its oldest turns",
        Context.REJECT,
        form=Form(str, _context),
    )

    @property
    def fallbacks(self) -> tuple[str, ...]:
        """The deployments that its ladders name, each once."""
        return tuple(dict.fromkeys(name for each in self.ladders for name in each.fallbacks))


def degrading(said: Said, context: str) -> Degrading:
    """What a spec says. Raises InvalidSpec."""
    return Degrading(_ladders(by_reason(said)), _context(context))


def by_reason(said: Said) -> dict[str, Sequence[str]]:
    """The rungs of each ladder by its reason, as documents have them. Raises InvalidSpec."""
    named = said if isinstance(said, Mapping) else {OTHERS: said}
    if "" in named:
        raise InvalidSpec(f"degrade has the reason '': {OTHERS!r} stands for all others")
    return {
        "" if reason == OTHERS else reason: rungs
        for reason, rungs in named.items()
        if rungs or reason != OTHERS
    }


def said_of(value: Degrading) -> list[str] | dict[str, list[str]]:
    """The ladders as a spec says them: a list where one serves all reasons."""
    said = {each.reason or OTHERS: list(each.rungs) for each in value.ladders}
    return said.get(OTHERS, []) if set(said) <= {OTHERS} else said


def check_no_circle(
    name: str, fallbacks_of: Callable[[str], Sequence[str]], ending: Collection[str] = ()
) -> None:
    """Raises InvalidSpec where the fallbacks of this deployment lead back to it. `fallbacks_of`:
    those of any deployment, by its name; `ending`: those that are known to be in no circle."""
    came_from: dict[str, str] = {}
    ahead = [name]
    while ahead:
        here = ahead.pop()
        for there in fallbacks_of(here):
            if there == name:
                way = " -> ".join([*_way_to(here, came_from), name])
                raise InvalidSpec(
                    f"degrade makes a circle, {way}: take out one of these fallbacks, so that each"
                    " way ends"
                )
            if there not in came_from and there not in ending:
                came_from[there] = here
                ahead.append(there)


def _way_to(end: str, came_from: Mapping[str, str]) -> list[str]:
    way = [end]
    while way[0] in came_from:
        way.insert(0, came_from[way[0]])
    return way
