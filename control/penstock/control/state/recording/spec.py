"""What a recording may say: whose requests are kept, how many, for how long. Pure values."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from penstock.control.errors import InvalidInput
from penstock.control.state.shadow.spec import (
    MOST_PERMILLE,
    Primary,
    Record,
    Sample,
    check_name,
    check_once,
    check_within,
)

MOST_REQUESTS: Final = 1_000_000  # that a replay can keep the order of
MOST_MIB: Final = 1 << 20
ENDPOINTS: Final = (
    *("/v1/chat/completions", "/v1/completions", "/v1/responses", "/v1/messages"),
    "/v1/embeddings",
)
"""Whose requests can be sent once more."""
KEPT: Final = (Record.REDACTED, Record.FULL)


@dataclass(frozen=True, slots=True)
class RecordUntil:
    """When a recording ends by itself: at the earliest of these."""

    requests: int = 10_000
    mib: int = 256  # of them together
    at: datetime | None = None


@dataclass(frozen=True, slots=True)
class RecordingSpec:
    """What an operator asks for. Raises InvalidInput."""

    name: str
    primary: Primary
    share_permille: int = 100
    sample: Sample = Sample.REQUEST
    tenants: tuple[str, ...] = ()  # empty: all that allow it
    endpoints: tuple[str, ...] = ()  # paths; empty: ENDPOINTS
    until: RecordUntil = field(default_factory=RecordUntil)
    record: Record = Record.REDACTED

    def __post_init__(self) -> None:
        check_name(self.name)
        check_within("share_permille", self.share_permille, 1, MOST_PERMILLE)
        check_within("until.requests", self.until.requests, 1, MOST_REQUESTS)
        check_within("until.mib", self.until.mib, 1, MOST_MIB)
        check_once("tenants", self.tenants)
        check_once("endpoints", self.endpoints)
        for path in self.endpoints:
            if path not in ENDPOINTS:
                there = ", ".join(ENDPOINTS)
                raise InvalidInput(f"endpoints has {path!r}, which cannot be recorded: {there} can")
        if self.record not in KEPT:
            raise InvalidInput(f"record is {self.record.value!r}: it must be redacted or full")
