"""Whether a gateway process lives, drains or hangs. Pure: signs and a moment give a verdict.

Clients can fill every connection, and slow requests every I/O thread, of a gateway that works. So
no silence on the port of clients ever counts against it; an answer there counts for it, as reports
and the status port do, which have threads of their own. All moments are seconds of the head's
monotonic clock.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from enum import StrEnum


class Verdict(StrEnum):
    """What the signs say."""

    STARTING = "starting"  # no sign yet
    READY = "ready"
    DRAINING = "draining"  # it said so: it ends by itself when its last client has
    SILENT = "silent"  # no sign for a while: shown, left alone
    HUNG = "hung"  # no sign of any kind for so long that nothing can be lost by ending it


@dataclass(frozen=True, slots=True)
class GatewayPatience:
    """How long a gateway may be silent; tests shorten it."""

    silent_after: timedelta = timedelta(seconds=5)
    # Raise where gateways are suspended for longer, as virtual machines are when they move.
    hung_after: timedelta = timedelta(seconds=60)
    # One that drains is busy ending; its own deadline is far below this.
    hung_draining_after: timedelta = timedelta(minutes=10)
    # Besides: a head that slept has not asked, and an unasked gateway is not silent.
    hung_unanswered: int = 20  # probes in a row
    # One that answers and never reported for so long is refused, or talks to another head.
    mute_after: timedelta = timedelta(seconds=30)


@dataclass(frozen=True, slots=True)
class Signs:
    """What was seen of one gateway process; None: never."""

    since: float  # started by this head, or adopted
    reported_at: float | None = None  # its latest report arrived
    bytes_sent: int = 0  # as of that report
    moved_at: float | None = None  # a report told of more bytes than the one before
    answered_at: float | None = None  # it answered a probe
    unanswered: int = 0  # probes in a row without an answer
    draining: bool = False
    has_routes: bool = False  # its latest report says so

    def reported(
        self, bytes_sent: int, now: float, *, draining: bool, has_routes: bool = False
    ) -> Signs:
        """After a report. A drain is never taken back."""
        moved = self.reported_at is not None and bytes_sent > self.bytes_sent
        return replace(
            self,
            reported_at=now,
            bytes_sent=bytes_sent,
            moved_at=now if moved else self.moved_at,
            unanswered=0,
            draining=self.draining or draining,
            has_routes=has_routes,
        )

    def asked_to_drain(self) -> Signs:
        """After the SIGTERM that asks it to drain."""
        return replace(self, draining=True)

    def answered(self, now: float) -> Signs:
        """After a probe that was answered."""
        return replace(self, answered_at=now, unanswered=0)

    def missed(self) -> Signs:
        """After a probe that nobody answered."""
        return replace(self, unanswered=self.unanswered + 1)

    def not_missed(self) -> Signs:
        """After a probe that it may have answered: no sign of life, and none against it."""
        return replace(self, unanswered=0)

    @property
    def observed_at(self) -> float | None:
        """The newest sign of life."""
        seen = (self.reported_at, self.moved_at, self.answered_at)
        return max((moment for moment in seen if moment is not None), default=None)


def is_mute(signs: Signs, now: float, patience: GatewayPatience) -> bool:
    """Whether it works, and its reports do not reach this head: nor do routes reach it."""
    lasted = timedelta(seconds=now - signs.since)
    return signs.reported_at is None and not signs.draining and lasted >= patience.mute_after


def judge(signs: Signs, now: float, patience: GatewayPatience) -> Verdict:
    """The verdict on a process that runs; only `HUNG` is a reason to end it."""
    observed_at = signs.observed_at
    silent = timedelta(seconds=now - max(signs.since, observed_at or signs.since))
    limit = patience.hung_draining_after if signs.draining else patience.hung_after
    if silent >= limit and signs.unanswered >= patience.hung_unanswered:
        return Verdict.HUNG
    if signs.draining:
        return Verdict.DRAINING
    if observed_at is None:
        return Verdict.STARTING
    return Verdict.SILENT if silent >= patience.silent_after else Verdict.READY
