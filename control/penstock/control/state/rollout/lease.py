"""Whose a deployment is, and until when it is there. Values; what follows is in `engines.py`."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class Owner(StrEnum):
    """Who looks after a deployment."""

    PEOPLE = "people"  # somebody wrote its spec, and changes it
    ENGINES = "engines"  # /engines made it: one replica, a template that stays, an end


@dataclass(frozen=True, slots=True)
class Lease:
    """For how long an engine is there. The times are those of a steady clock."""

    by: str = ""  # the token that asked for it
    asked_at: datetime | None = None
    expires_at: datetime | None = None  # None: never
    ready_ms: int = 0  # milliseconds from the request to ready; 0: it was not ready yet
