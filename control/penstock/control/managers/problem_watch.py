"""Keeps the list of what is wrong: looks at the head's own disk and store beside the view."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from typing import Protocol

from penstock.control.errors import Unavailable
from penstock.control.managers.cluster_store import ClusterStore
from penstock.control.managers.routing.routes import RouteManager
from penstock.control.shipped_programs import shipped_programs
from penstock.control.state.problems import HeadHealth, Problem, problems
from penstock.control.supervision.clock import Clock

LOOK_EVERY = timedelta(seconds=1)
CHECK = "store_check"  # a counter: the write that finds out whether writing works again


class Writes(Protocol):
    """What knows how the last transaction of the store ended."""

    @property
    def failing(self) -> str:
        """Why it failed; empty where it did not."""


class ProblemWatch:
    """The problems of this moment. `latest` may be called from any thread."""

    def __init__(
        self,
        cluster: ClusterStore,
        routes: RouteManager,
        writes: Writes,
        data_dir_trouble: Callable[[], str],
        clock: Clock,
    ) -> None:
        """`data_dir_trouble` may take long: it is asked in a thread of its own."""
        self._cluster = cluster
        self._routes = routes
        self._writes = writes
        self._data_dir_trouble = data_dir_trouble
        self._clock = clock
        self._data_dir = ""
        self._latest: tuple[Problem, ...] = ()

    def now(self) -> tuple[Problem, ...]:
        """The list, from the view as it is."""
        health = HeadHealth(
            self._data_dir, self._writes.failing, self._routes.withheld, self._cluster.takes_over
        )
        view, live = self._cluster.view(), self._cluster.liveness.known
        return problems(view, live, health, self._clock.steady(), shipped_programs())

    def latest(self) -> tuple[Problem, ...]:
        """The list, a second old at most."""
        return self._latest

    async def run(self) -> None:
        """Looks until cancelled."""
        while True:
            self._data_dir = await asyncio.to_thread(self._data_dir_trouble)
            if self._writes.failing:
                with suppress(Unavailable):
                    await self._cluster.raise_counter(CHECK, 1)
            self._latest = self.now()
            await self._clock.sleep(LOOK_EVERY)
