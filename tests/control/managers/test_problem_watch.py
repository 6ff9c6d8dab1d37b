"""The list of problems follows the disk and the store of the head."""

from __future__ import annotations

import asyncio

import pytest

from penstock.control.errors import StoreUnavailable
from penstock.control.managers.cluster_store import ClusterStore
from penstock.control.managers.problem_watch import LOOK_EVERY, ProblemWatch
from penstock.control.managers.routing.routes import RouteManager
from penstock.control.state.problems import ProblemKind
from penstock.control.store.timed import TimedStore
from tests.fakes.control_clock import ManualClock
from tests.fakes.control_store import MemoryStore
from tests.fakes.waiting import until


class Unobserved:
    """Nobody is told of writes."""

    def written(self, seconds: float, *, failed: bool) -> None: ...


async def test_a_store_that_fails_is_told_until_it_can_be_written_again() -> None:
    store, clock, disk = MemoryStore(), ManualClock(), ["the disk is full"]
    timed = TimedStore(store, clock, Unobserved())
    cluster = ClusterStore(timed, clock)
    await cluster.restore()
    watch = ProblemWatch(cluster, RouteManager(cluster, clock), timed, lambda: disk[0], clock)
    store.failing = True
    with pytest.raises(StoreUnavailable):
        await cluster.raise_counter("any", 1)
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(watch.run())
        await until(lambda: clock.sleepers == 1, "it has looked")
        told = [each.kind for each in watch.latest()]
        assert told == [ProblemKind.DATA_DIR, ProblemKind.STORE]
        store.failing, disk[0] = False, ""
        clock.advance(LOOK_EVERY)
        await until(lambda: watch.latest() == (), "nothing is wrong any more")
        running.cancel()
