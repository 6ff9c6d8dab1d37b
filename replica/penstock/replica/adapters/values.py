"""What the parts of a replica that deal in adapters tell each other. Values and Protocols only."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from penstock.adapters.shown import without_places
from penstock.replica.values import AdapterSource, EngineError, Failed

SLOTS_BY_RANK = 4
"""Of an engine that was told a rank, and not how many adapters it is to hold."""

_BUSY_RETRY_MS = 1000


class Code(StrEnum):
    """Why a call cannot have its adapter here. None of them says anything against the replica."""

    SLOTS_FULL = "adapter_slots_full"  # all slots are pinned or in use
    LOAD_FAILED = "adapter_load_failed"
    LOAD_TIMEOUT = "adapter_load_timeout"
    MISMATCH = "adapter_mismatch"  # held with other bytes


class AdapterUnavailable(EngineError):
    """An adapter that cannot be had here now; another replica may have it."""

    def __init__(self, code: Code, message: str) -> None:
        super().__init__(message)
        self.code = code

    @property
    def failed(self) -> Failed:
        """How a call ends for it; its client learns nothing of this machine's directories."""
        wait = _BUSY_RETRY_MS if self.code is Code.SLOTS_FULL else 0
        told = without_places(str(self))
        return Failed(503, "server_error", self.code, told, retryable=True, retry_after_ms=wait)


def no_room(name: str, slots: int) -> AdapterUnavailable:
    """What is said where none of the engine's slots can be had."""
    if not slots:
        why = "this replica takes no adapters; set max_adapters of its deployment"
    else:
        why = f"all {slots} slots for adapters are pinned or in use"
    return AdapterUnavailable(Code.SLOTS_FULL, f"There is no room for the adapter {name}: {why}.")


def not_in_time(name: str, seconds: float) -> AdapterUnavailable:
    """What is said where a load takes longer than it may."""
    return AdapterUnavailable(
        Code.LOAD_TIMEOUT, f"The adapter {name} was not loaded within {seconds:g} s."
    )


class Contents(Protocol):
    """Who hands out the bytes of adapters: the node agent."""

    async def directory(self, digest: str) -> Path:
        """Where the content lies, checked just now. Raises `EngineError`."""


@dataclass(frozen=True, slots=True)
class AdapterRoom:
    """What an engine is to have for adapters. Either number of it makes it take some."""

    slots: int = 0  # adapters at once
    max_rank: int = 0  # 0: the engine's default
    load_timeout: float = 30.0  # seconds that a call waits for its adapter
    contents: Contents | None = None  # none: there is no agent

    def slots_for(self, named: Collection[AdapterSource]) -> int:
        """Slots of an engine that begins with these; 0: it takes no adapters."""
        by_rank = SLOTS_BY_RANK if self.max_rank and not self.slots else 0
        return max(self.slots, by_rank, len(named))


@dataclass(frozen=True, slots=True)
class Prepared:
    """An adapter whose bytes are here and were looked at."""

    adapter: AdapterSource  # with its digest
    directory: Path | None  # none: an engine that needs no bytes
    rank: int = 0  # 0: not known

    @property
    def name(self) -> str:
        """Its engine name."""
        return self.adapter.name


@dataclass(frozen=True, slots=True)
class Use:
    """How much an adapter is used."""

    calls: int  # now
    last: float  # monotonic seconds: its last call began or ended; before any, it came


class Weights(Protocol):
    """An engine's hands on adapters. `add` and `remove` are called one at a time."""

    async def prepare(self, adapter: AdapterSource) -> Prepared:
        """Gets the adapter's bytes and looks at them. Raises `EngineError`."""

    async def add(self, prepared: Prepared) -> None:
        """Puts the adapter into the engine; leaves nothing behind where it raises."""

    async def remove(self, name: str) -> bool:
        """Takes the adapter out of the engine. False: it stays, for a call uses it or the engine
        does not let go of it."""

    def close(self, name: str) -> None:
        """No call begins with the adapter, so that it can leave; those that it has go on."""

    def reopen(self, name: str) -> None:
        """Calls may begin with it again, if it is still there."""

    def uses(self) -> Mapping[str, Use]:
        """Of each adapter in the engine."""

    def tell_when_idle(self, names: Collection[str], tell: Callable[[], None]) -> None:
        """Calls `tell` once as soon as one of these is not used, on the loop's thread."""
