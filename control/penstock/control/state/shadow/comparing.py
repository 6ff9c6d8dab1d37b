"""What head and comparer tell each other of shadows. Pure values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from penstock.control.declared.fields import drawn
from penstock.control.state.recording.recorded import RecordingStanding
from penstock.control.state.shadow.shadows import Shadow
from penstock.control.state.shadow.spec import Record


@dataclass(frozen=True, slots=True)
class Order:
    """A shadow, as far as it has to be known to compare."""

    uid: str
    primary: str  # as people read it
    candidate: str
    checks: tuple[str, ...] = ()  # that the verdict goes by; empty: the usual ones
    margins: tuple[tuple[str, float], ...] = ()  # by check
    embedder: str = ""  # deployment that is asked what texts mean; empty: none
    judge: str = ""  # deployment that is asked which answer is better; empty: none
    ended: bool = False  # nothing more of it counts
    record: Record = Record.NONE
    guardrails: tuple[tuple[str, str], ...] = ()  # patterns by name

    @classmethod
    def of(cls, shadow: Shadow) -> Order:
        """What is to be known of this one."""
        named = {"primary": str(shadow.spec.primary), "candidate": str(shadow.spec.candidate)}
        return drawn(cls, shadow, shadow.spec, **named, ended=bool(shadow.ended))

    @property
    def asks(self) -> bool:
        """Whether others are asked about its pairs."""
        return bool(self.embedder or self.judge)


class Standing(NamedTuple):
    """How a shadow stands."""

    uid: str
    verdict: str  # better, equal, worse, undecided
    pairs: int  # that are counted: one a session
    self_pairs: int  # of these, with the primary asked again


class Standings(NamedTuple):
    """How all of them stand."""

    shadows: Sequence[Standing]
    recordings: Sequence[RecordingStanding] = ()
    trouble: str = ""  # why nothing is counted, as the end of a sentence; empty: it is


class Account(NamedTuple):
    """All that is known of a shadow."""

    json: str  # an object
    markdown: str
    html: str  # a page
