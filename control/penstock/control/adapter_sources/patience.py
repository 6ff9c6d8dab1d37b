"""How long a source on the network is waited for."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True, slots=True)
class Patience:
    """Each wait has an end, and so has one that is fed a byte now and then."""

    connect: timedelta = timedelta(seconds=5)
    silence: timedelta = timedelta(seconds=20)  # between two pieces, and before the first
    tries: int = 3  # of a request, and of a file whose connection breaks
    window: timedelta = timedelta(seconds=30)
    least: int = 1 << 20  # bytes that have to come within each window
    whole: timedelta = timedelta(hours=1)  # for both files, with all tries
