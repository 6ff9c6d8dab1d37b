"""Requests that are refused because engines died with them aboard: listed, released."""

from __future__ import annotations

import logging
import re
from datetime import UTC, datetime

from fastapi import APIRouter, status
from pydantic import Field

from penstock.control.admin.auth import Operator, Viewer
from penstock.control.admin.derived import Shown
from penstock.control.admin.parameters import Paged
from penstock.control.errors import InvalidInput
from penstock.control.managers.routing.quarantine import Quarantine
from penstock.control.state.routing.suspects import EngineDeath, EngineEnd, Suspect

log = logging.getLogger(__name__)

LAST_MS = 253_402_300_799_000  # milliseconds since 1970: the calendar's last second
_FINGERPRINT = re.compile(r"[0-9a-f]{64}")


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


def quarantine_api(quarantine: Quarantine) -> APIRouter:
    """Seen by anybody with a token, released by operators."""
    router = APIRouter(prefix="/quarantine", tags=["quarantine"])

    @router.get("")
    async def list_quarantine(_: Viewer, page: Paged) -> list[SuspectModel]:
        """All suspects, by fingerprint."""
        found = {suspect.fingerprint.hex(): suspect for suspect in quarantine.suspects()}
        return [SuspectModel.of(suspect) for suspect in page.of(found)]

    @router.delete("/{fingerprint}", status_code=status.HTTP_204_NO_CONTENT)
    async def release(fingerprint: str, caller: Operator) -> None:
        """Every gateway takes the request again."""
        if not _FINGERPRINT.fullmatch(fingerprint):
            raise InvalidInput(
                f"fingerprint is {fingerprint!r}: it must be 64 hexadecimal digits, as listed"
            )
        await quarantine.release(bytes.fromhex(fingerprint), caller.name)
        log.info("released", extra={"fingerprint": fingerprint, "who": caller.name})

    return router


def _moment(milliseconds: int) -> datetime:
    """A gateway's clock may be anywhere; what is outside of the calendar becomes its edge."""
    return datetime.fromtimestamp(min(max(milliseconds, 0), LAST_MS) / 1000, UTC)
