"""The list of problems follows the disk and the store of the head."""

from __future__ import annotations

import asyncio
from contextlib import closing
from pathlib import Path
from sqlite3 import connect

import pytest

from penstock.control.errors import StoreUnavailable
from penstock.control.managers.cluster_store import ClusterStore
from penstock.control.managers.problem_watch import LOOK_EVERY, ProblemWatch
from penstock.control.managers.routing.routes import RouteManager
from penstock.control.state.problems import ProblemKind
from penstock.control.store.sqlite import SqliteStore
from penstock.control.store.timed_writes import TimedWrites
from tests.fakes.control_clock import ManualClock
from tests.fakes.waiting import until


class Unobserved:
    """Nobody is told of writes."""

    def written(self, seconds: float, *, failed: bool) -> None: ...


def meddle(file: Path, statement: str) -> None:
    """Changes the store behind its back."""
    with closing(connect(file)) as db:
        db.execute(statement)


async def test_a_store_that_fails_is_told_until_it_can_be_written_again(tmp_path: Path) -> None:
    clock, disk = ManualClock(), ["the disk is full"]
    store = await SqliteStore.open(file := tmp_path / "a.db")
    store.observe(writes := TimedWrites(clock, Unobserved()))
    cluster = ClusterStore(store, clock)
    await cluster.restore()
    watch = ProblemWatch(cluster, RouteManager(cluster, clock), writes, lambda: disk[0], clock)
    meddle(file, "ALTER TABLE documents RENAME TO gone")
    with pytest.raises(StoreUnavailable):
        await cluster.raise_counter("any", 1)
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(watch.run())
        await until(lambda: clock.sleepers == 1, "it has looked")
        told = [each.kind for each in watch.latest()]
        assert told == [ProblemKind.DATA_DIR, ProblemKind.STORE]
        meddle(file, "ALTER TABLE gone RENAME TO documents")
        disk[0] = ""
        clock.advance(LOOK_EVERY)
        await until(lambda: watch.latest() == (), "nothing is wrong any more")
        running.cancel()
    await store.close()
