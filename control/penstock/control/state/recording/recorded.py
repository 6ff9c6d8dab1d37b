"""What head and comparer tell each other of recordings. Pure values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from penstock.control.state.shadow.spec import Record


@dataclass(frozen=True, slots=True)
class RecordingOrder:
    """A recording, as far as it has to be known to record."""

    uid: str
    record: Record
    began_ms: int  # milliseconds since 1970; arrivals count from here
    most_requests: int
    most_bytes: int
    ended: bool = False


class RecordingStanding(NamedTuple):
    """How a recording stands."""

    uid: str
    requests: int  # that were recorded, ever
    bytes: int  # likewise
    kept: int  # requests that are there yet
    unreadable: int  # of these, under a key that is not there
    left_out: Mapping[str, int]  # requests that were not recorded, by why
