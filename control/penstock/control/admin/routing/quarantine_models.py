"""What is in quarantine, as the API shows it."""

from __future__ import annotations

from datetime import UTC, datetime

from pydantic import Field

from penstock.control.admin.derived import Shown
from penstock.control.state.routing.suspects import EngineDeath, EngineEnd, Suspect

LAST_MS = 253_402_300_799_000  # milliseconds since 1970: the calendar's last second


class EngineDeathModel(Shown):
    """An engine died with the request aboard."""

    replica_id: str
    gateway_id: str = Field(description="who saw it")
    at: datetime
    end: EngineEnd = Field(description="how: `crashed` is two points, the others are one")
    shared: bool = Field(description="another suspect was aboard: no points, but for the first")

    @classmethod
    def of(cls, death: EngineDeath) -> EngineDeathModel:
        """A death as the API shows it."""
        return cls.drawn(death, at=_moment(death.at_ms))


class SuspectModel(Shown):
    """One request, known by the SHA-256 of deployment, path and body: the body itself is not."""

    fingerprint: str = Field(description="64 hexadecimal digits")
    deployment: str
    path: str
    quarantined: bool = Field(description="refused; else it may run, where no other suspect does")
    deaths: list[EngineDeathModel]
    until: datetime = Field(description="forgotten from then on")

    @classmethod
    def of(cls, suspect: Suspect) -> SuspectModel:
        """A suspect as the API shows it."""
        return cls.drawn(
            suspect,
            fingerprint=suspect.fingerprint.hex(),
            quarantined=suspect.is_quarantined,
            deaths=[EngineDeathModel.of(death) for death in suspect.deaths],
            until=_moment(suspect.until_ms),
        )


def _moment(milliseconds: int) -> datetime:
    """A gateway's clock may be anywhere; what is outside of the calendar becomes its edge."""
    return datetime.fromtimestamp(min(max(milliseconds, 0), LAST_MS) / 1000, UTC)
