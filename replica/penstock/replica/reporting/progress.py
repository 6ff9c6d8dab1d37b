"""Whether an engine gets on, works, or hangs: values and pure functions over readings of it.

An engine that answers a question, or finished a step since the last look, gets on. One that does
neither may be in a long step: then its processes use the CPU. One whose processes do not even use
the CPU waits for something that does not come. No I/O, no clock.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

_WORKING_SHARE: Final = 0.02
"""Of one core, above which an engine is at work; a blocked one's threads wake up now and then."""


@dataclass(frozen=True, slots=True)
class Patience:
    """How long an engine may do nothing, and how long it may work on one step; seconds."""

    idle: float
    busy: float


@dataclass(frozen=True, slots=True)
class Reading:
    """An engine at one moment: monotonic seconds, its steps so far, CPU seconds it used so far.

    `answered`: it has just answered a question.
    """

    at: float
    steps: int
    cpu_seconds: float
    answered: bool


@dataclass(frozen=True, slots=True)
class Progress:
    """The last readings at which the engine had got on, and at which it had worked."""

    advanced: Reading
    worked: Reading

    def after(self, reading: Reading) -> Progress:
        """The same with one reading more."""
        if reading.answered or reading.steps != self.advanced.steps:
            return Progress(reading, reading)
        used = reading.cpu_seconds - self.worked.cpu_seconds
        if used > _WORKING_SHARE * (reading.at - self.worked.at):
            return replace(self, worked=reading)
        return self

    def fault(self, now: float, patience: Patience) -> str:
        """Why the engine counts as hung, in one line; empty while it does not."""
        if now - self.worked.at >= patience.idle:
            return (
                f"the engine made no progress and used no CPU for {patience.idle:g} s; if that is "
                "its way, raise the engine setting engine_hung_after"
            )
        if now - self.advanced.at >= patience.busy:
            return (
                f"the engine worked for {patience.busy:g} s without finishing a step; if its steps "
                "take so long, raise the engine setting engine_stuck_after"
            )
        return ""
