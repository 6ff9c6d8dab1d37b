"""What head and comparer tell each other of shadows. Pure values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from penstock.control.state.shadow.shadows import Shadow


@dataclass(frozen=True, slots=True)
class Order:
    """A shadow, as far as it has to be known to compare."""

    uid: str
    primary: str  # as people read it
    candidate: str
    checks: tuple[str, ...] = ()  # that the verdict goes by; empty: the usual ones
    margins: tuple[tuple[str, float], ...] = ()  # by check
    guardrails: tuple[tuple[str, str], ...] = ()  # patterns by name

    @classmethod
    def of(cls, shadow: Shadow) -> Order:
        """What is to be known of this one."""
        spec = shadow.spec
        ends = str(spec.primary), str(spec.candidate)
        return cls(shadow.uid, *ends, spec.checks, spec.margins, spec.guardrails)


class Standing(NamedTuple):
    """How a shadow stands."""

    uid: str
    verdict: str  # better, equal, worse, undecided
    pairs: int  # that are counted: one a session
    self_pairs: int  # of these, with the primary asked again


class Account(NamedTuple):
    """All that is known of a shadow."""

    json: str  # an object
    markdown: str
    html: str  # a page
