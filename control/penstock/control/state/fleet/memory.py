"""What memory replicas take, and would take. Values."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple


class FitVerdict(StrEnum):
    """Whether a replica could be started; nodes.proto, `FitVerdict`."""

    UNKNOWN = "unknown"  # nothing tells: `reason` says why
    FITS = "fits"
    TIGHT = "tight"  # it starts; under load, memory may run out
    TOO_LARGE = "too_large"  # a start would be refused


class FitLine(NamedTuple):
    """A part of the sum."""

    what: str  # "weights", "KV cache", ...
    bytes: int
    note: str = ""


@dataclass(frozen=True, slots=True)
class MemoryFit:
    """What a replica would take of a node's memory, or of each of its accelerators, beside what is
    free there."""

    verdict: FitVerdict = FitVerdict.UNKNOWN
    lines: tuple[FitLine, ...] = ()
    needed_bytes: int = 0
    free_bytes: int = 0
    reason: str = ""  # why it does not fit or is not known, one line for a person
    advice: tuple[str, ...] = ()  # settings and machines that it would fit
    node: str = ""  # whose memory it is; empty: this machine's


class ReplicaMemory(NamedTuple):
    """What a replica's processes take, measured some seconds ago."""

    replica_id: str
    memory_bytes: int = 0  # of the machine's: PSS of its process group
    device_memory_bytes: int = 0  # of all its accelerators
