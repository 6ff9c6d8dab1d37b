"""What gateways are asked about requests, and what their answers come to together. Pure.

Records stand in one order over all gateways, the newest first: by when their request had been
received, and by its id where that is the same microsecond. A page ends at a place in it.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, NamedTuple

from penstock.control.errors import InvalidInput
from penstock.control.state.observe.record import RequestRecord, moment

LATEST: Final = 2**63  # microseconds since 1970: no gateway keeps one of then


@dataclass(frozen=True, slots=True)
class RequestFilter:
    """Those that are as all of these say; fields as in explain.proto."""

    deployment: str = ""
    tenant: str = ""
    status: int = 0
    reason: str = ""
    slower_than_ms: int = 0
    since_us: int = 0
    limit: int = 0
    before_us: int = 0


class Place(NamedTuple):
    """Where a record stands."""

    received_us: int
    request_id: str  # empty: behind all of that microsecond

    @property
    def before_us(self) -> int:
        """What a gateway is asked for that is to tell what stands behind this."""
        return self.received_us + 1 if self.request_id else self.received_us

    @property
    def text(self) -> str:
        """As callers are given it: nothing to read."""
        said = f"{self.received_us}/{self.request_id}"
        return base64.urlsafe_b64encode(said.encode()).decode().rstrip("=")

    @classmethod
    def of(cls, text: str) -> Place:
        """The inverse of `text`. Raises `InvalidInput`."""
        try:
            padded = text + "=" * (-len(text) % 4)
            said = base64.b64decode(padded, altchars=b"-_", validate=True).decode()
            number, _, request_id = said.partition("/")
            received_us = int(number)
            if not 0 <= received_us < LATEST:
                raise ValueError(f"{received_us} is no time")
            return cls(received_us, request_id)
        except (binascii.Error, ValueError):
            raise InvalidInput(
                f"after is {text[:100]!r}, which no page of this list ended with: give `next` of"
                " the page before"
            ) from None


@dataclass(frozen=True, slots=True)
class Kept:
    """A record, and the gateway that keeps it."""

    record: RequestRecord
    gateway: str

    @property
    def place(self) -> Place:
        """Where it stands."""
        return Place(self.record.received_us, self.record.request_id)


@dataclass(frozen=True, slots=True)
class GatewayAnswer:
    """Whether a gateway said what it keeps."""

    id: str
    answered: bool
    detail: str = field(default="", metadata={"description": "why it did not; empty: it did"})
    kept_since: datetime | None = field(
        default=None,
        metadata={
            "description": "all that came from then on and have ended are kept, of those before"
            " maybe some; null: none is"
        },
    )


@dataclass(frozen=True, slots=True)
class KeptRecords:
    """What a gateway said, whole."""

    records: tuple[RequestRecord, ...] = ()
    kept_since_us: int = 0
    more: bool = False  # it may have others, older than these

    def answer(self, gateway: str) -> GatewayAnswer:
        """That it said it."""
        since = moment(self.kept_since_us) if self.kept_since_us else None
        return GatewayAnswer(gateway, answered=True, kept_since=since)


class Page(NamedTuple):
    """Some records, the newest first."""

    kept: Sequence[Kept]
    next: Place | None  # where to go on; None: that is all


def page_of(told: Iterable[tuple[str, KeptRecords]], limit: int, after: Place | None) -> Page:
    """What stands behind a place, of what each gateway said when it was asked for its newest
    `limit` or more from there on. What is older than the last of one that has more is left for
    later: what it has in between is not known."""
    found, known_until, more = dict[Place, Kept](), Place(0, ""), False
    for gateway, each in told:
        kept = {
            one.place: one
            for one in (Kept(record, gateway) for record in each.records)
            if not after or one.place.received_us < after.before_us
        }
        found |= kept
        if each.more and kept:
            known_until, more = max(known_until, min(kept)), True
    behind = sorted(
        (place for place in found if known_until <= place and (not after or place < after)),
        reverse=True,
    )
    shown = [found[place] for place in behind[:limit]]
    if not more and len(behind) <= limit:
        return Page(shown, None)
    return Page(shown, shown[-1].place if shown else Place(known_until.received_us, ""))
