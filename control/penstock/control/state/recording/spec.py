"""What a recording may say: whose requests are kept, how many, for how long. Pure values."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from penstock.control.declared.fields import Form, check, inner, said, setting
from penstock.control.errors import InvalidInput
from penstock.control.state.shadow.spec import (
    MOST_NAMES,
    MOST_PERMILLE,
    Primary,
    Record,
    Sample,
    check_name,
    check_once,
    parsed_primary,
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

    requests: int = setting("that are recorded", 10_000, unit="requests", ge=1, le=MOST_REQUESTS)
    mib: int = setting("of requests together", 256, unit="MiB", ge=1, le=MOST_MIB)
    at: datetime | None = setting("a time with its zone", None)


@dataclass(frozen=True, slots=True)
class RecordingSpec:
    """What an operator asks for. Raises InvalidInput."""

    name: str = field(metadata=said(examples=("monday",)))
    primary: Primary = field(
        metadata=said(
            "deployment, or deployment:alias, whose requests are recorded",
            form=Form(str, parsed_primary),
            examples=("chat",),
        )
    )
    share_permille: int = setting(
        "of the requests, in {unit}", 100, unit="thousandths", ge=1, le=MOST_PERMILLE
    )
    sample: Sample = setting("session: all of its requests, or none", Sample.REQUEST)
    tenants: tuple[str, ...] = setting("empty: all that allow it", (), most=MOST_NAMES)
    endpoints: tuple[str, ...] = setting(
        f"empty: {', '.join(ENDPOINTS)}, which are all there are", (), most=MOST_NAMES
    )
    until: RecordUntil = inner(RecordUntil, prefix="until_")
    record: Record = setting(
        "redacted: without personal data and secrets; full: as clients sent them", Record.REDACTED
    )

    def __post_init__(self) -> None:
        check_name(self.name)
        check(self)
        check(self.until, within="until.")
        check_once("tenants", self.tenants)
        check_once("endpoints", self.endpoints)
        for path in self.endpoints:
            if path not in ENDPOINTS:
                there = ", ".join(ENDPOINTS)
                raise InvalidInput(f"endpoints has {path!r}, which cannot be recorded: {there} can")
        if self.record not in KEPT:
            raise InvalidInput(f"record is {self.record.value!r}: it must be redacted or full")
