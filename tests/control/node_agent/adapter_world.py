"""A cache of adapters and its head, for tests."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from penstock.adapters.fitness import FamilyLimits
from penstock.adapters.version import CONTENT_FILES, Digest
from penstock.control.errors import NotFound, Unavailable
from penstock.control.node_agent.adapter_cache import AdapterCache
from penstock.control.store.adapters.content import AdapterContents
from penstock.v1 import nodes_pb2
from tests.fakes.control_clock import ManualClock

SHIPPED = Path("replica/penstock/replica/default_model/weights/adapters")
SIZE = sum((SHIPPED / "pirate" / name).stat().st_size for name in CONTENT_FILES)
Piece = nodes_pb2.AdapterPiece
Pieces = Iterable[nodes_pb2.AdapterPiece]


def pieces_of(directory: Path, most: int = 100_000) -> list[nodes_pb2.AdapterPiece]:
    pieces = []
    for name in CONTENT_FILES:
        data = (directory / name).read_bytes()
        for begin in range(0, len(data), most):
            pieces.append(Piece(file="" if begin else name, data=data[begin : begin + most]))
    return pieces


@dataclass
class Head:
    """Sends what was registered with it, as `telling` makes it."""

    stored: AdapterContents
    asked: list[str] = field(default_factory=list)
    away: str = ""  # why it does not answer
    telling: Callable[[Sequence[nodes_pb2.AdapterPiece]], Pieces] = list
    held: asyncio.Event | None = None  # it sends one piece, and the rest when this is set
    stuck: bool = False  # it sends one piece, and never the rest

    async def fetch_adapter(self, digest: str) -> AsyncGenerator[nodes_pb2.AdapterPiece, None]:
        self.asked.append(digest)
        if self.away:
            raise Unavailable(self.away)
        directory = self.stored.directory_of(Digest(digest))
        if directory is None:
            raise NotFound(f"no adapter with the digest {digest}")
        for piece in self.telling(pieces_of(directory)):
            yield piece
            if self.stuck:
                await asyncio.Event().wait()
            if self.held is not None:
                await self.held.wait()


@dataclass
class World:
    """A cache, its head, and two adapters that the head has."""

    directory: Path
    head: Head
    cache: AdapterCache
    clock: ManualClock
    needed: set[str]
    pirate: Digest
    json: Digest
    running: asyncio.Task[None]  # the cache, to be stopped
    needing: Callable[[], set[str]] = set  # what replicas need beyond `needed`, whenever asked

    @property
    def lying(self) -> set[str]:
        """The contents that lie here."""
        return set(AdapterContents(self.directory).stored())

    def left_over(self) -> list[Path]:
        """What is on its way."""
        ways = ("fetching", "incoming")
        return [path for way in ways for path in (self.directory / way).glob("*")]


@asynccontextmanager
async def opened(
    tmp_path: Path,
    *,
    most_bytes: int = 1 << 30,
    limits: FamilyLimits = FamilyLimits(),  # noqa: B008 - immutable
    patience: timedelta = timedelta(seconds=30),
) -> AsyncIterator[World]:
    stored = AdapterContents(tmp_path / "head")
    pirate, json = (
        stored.take_in(SHIPPED / name, FamilyLimits()).digest for name in ("pirate", "json")
    )
    head, clock, needed = Head(stored), ManualClock(), set[str]()
    worlds: list[World] = []
    async with asyncio.TaskGroup() as tasks:
        cache = AdapterCache(
            tmp_path / "cache",
            head,
            clock,
            tasks,
            most_bytes=most_bytes,
            needed=lambda: needed.union(*(world.needing() for world in worlds)),
            limits=limits,
            patience=patience,
        )
        running = tasks.create_task(cache.run())
        world = World(tmp_path / "cache", head, cache, clock, needed, pirate, json, running)
        worlds.append(world)
        yield world
        running.cancel()
