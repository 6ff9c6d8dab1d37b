"""Requests that are refused because engines died with them aboard: listed, released."""

from __future__ import annotations

import logging
import re

from fastapi import APIRouter, Response, status

from penstock.control.admin.auth import Viewer
from penstock.control.admin.parameters import Paged
from penstock.control.admin.resources import resources
from penstock.control.admin.routing.quarantine_models import SuspectModel
from penstock.control.admin.writes import Change, tagged
from penstock.control.errors import InvalidInput
from penstock.control.managers.routing.quarantine import Quarantine

log = logging.getLogger(__name__)

_FINGERPRINT = re.compile(r"[0-9a-f]{64}")


def quarantine_api(quarantine: Quarantine) -> APIRouter:
    """Seen by anybody with a token, released by operators."""
    router = resources("/quarantine", tag="quarantine")

    @router.get("")
    async def list_quarantine(_: Viewer, page: Paged) -> list[SuspectModel]:
        """All suspects, by fingerprint."""
        found = {suspect.fingerprint.hex(): suspect for suspect in quarantine.suspects()}
        return [SuspectModel.of(suspect) for suspect in page.of(found)]

    @router.get("/{fingerprint}")
    async def get_suspect(fingerprint: str, _: Viewer, response: Response) -> SuspectModel:
        """One suspect."""
        found = quarantine.suspect(_parsed(fingerprint))
        tagged(response, found)
        return SuspectModel.of(found)

    @router.delete("/{fingerprint}", status_code=status.HTTP_204_NO_CONTENT)
    async def release(fingerprint: str, write: Change) -> None:
        """Every gateway takes the request again."""
        await quarantine.release(_parsed(fingerprint), write)
        if not write.dry_run:
            log.info("released", extra={"fingerprint": fingerprint, "who": write.who})

    return router


def _parsed(fingerprint: str) -> bytes:
    if not _FINGERPRINT.fullmatch(fingerprint):
        raise InvalidInput(
            f"fingerprint is {fingerprint!r}: it must be 64 hexadecimal digits, as listed"
        )
    return bytes.fromhex(fingerprint)
