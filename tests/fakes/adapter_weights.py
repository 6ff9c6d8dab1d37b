"""An engine's hands on adapters that a test moves: loads that wait, fail, or are in use."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from pathlib import Path

from penstock.replica.adapters.table import AdapterTable
from penstock.replica.adapters.values import Prepared, Use
from penstock.replica.values import AdapterSource, EngineError


class FakeWeights:
    """Holds names; a load of `slow` ones waits for `go`, one of `broken` ones fails."""

    def __init__(self) -> None:
        self.held: dict[str, str] = {}
        self.calls: dict[str, int] = {}
        self.last: dict[str, float] = {}
        self.prepared: list[str] = []
        self.removed: list[str] = []
        self.broken: dict[str, Exception] = {}
        self.slow: set[str] = set()
        self.go = asyncio.Event()
        self.adding = 0
        self.closed: set[str] = set()
        self.kept: dict[str, Exception] = {}  # why the engine does not let go of it
        self.stuck: set[str] = set()  # refused to leave: they came into use meanwhile
        self._uses = 0
        self._awaited: set[str] = set()
        self._tell: Callable[[], None] = lambda: None

    async def prepare(self, adapter: AdapterSource) -> Prepared:
        self.prepared.append(adapter.name)
        if adapter.name in self.slow:
            await self.go.wait()
        await asyncio.sleep(0)
        if error := self.broken.get(adapter.name):
            raise error
        return Prepared(replace(adapter, digest=adapter.digest or f"of {adapter.source}"), None)

    async def add(self, prepared: Prepared) -> None:
        self.adding += 1
        assert self.adding == 1, "the engine is changed by one at a time"
        await asyncio.sleep(0)
        self.adding -= 1
        self.held[prepared.name] = prepared.adapter.digest
        self.calls[prepared.name] = 0
        self.touch(prepared.name)

    async def remove(self, name: str) -> bool:
        if self.calls.get(name) or name in self.stuck:
            return False
        if error := self.kept.get(name):
            raise error
        self.removed.append(name)
        del self.held[name], self.calls[name]
        self.closed.discard(name)
        return True

    def close(self, name: str) -> None:
        self.closed.add(name)

    def reopen(self, name: str) -> None:
        self.closed.discard(name)

    def uses(self) -> Mapping[str, Use]:
        return {name: Use(self.calls[name], self.last[name]) for name in self.held}

    def tell_when_idle(self, names: Collection[str], tell: Callable[[], None]) -> None:
        self._awaited, self._tell = set(names), tell
        if any(not self.calls.get(name) for name in names):
            self._tell()

    def touch(self, name: str) -> None:
        """It is used just now."""
        self._uses += 1
        self.last[name] = self._uses

    def enter(self, name: str) -> None:
        """A call begins with it."""
        self.calls[name] += 1
        self.touch(name)

    def leave(self, name: str) -> None:
        """The call ends."""
        self.calls[name] -= 1
        self.touch(name)
        if not self.calls[name] and name in self._awaited:
            self._tell()

    def breaks(self, name: str, why: str = "no such file") -> None:
        """Loads of it fail."""
        self.broken[name] = EngineError(f"adapter {name}: {why}")


class FakeContents:
    """A node agent's contents: those that a test puts there. `slow` ones wait for `go`."""

    def __init__(self) -> None:
        self.directories: dict[str, Path] = {}
        self.slow: set[str] = set()
        self.go = asyncio.Event()

    async def directory(self, digest: str) -> Path:
        if digest in self.slow:
            await self.go.wait()
        try:
            return self.directories[digest]
        except KeyError:
            raise EngineError(f"nobody registered {digest}") from None


def no_adapters() -> AdapterTable:
    """The table of an engine that takes none."""
    return AdapterTable(FakeWeights())


__all__ = ["FakeContents", "FakeWeights", "no_adapters"]
