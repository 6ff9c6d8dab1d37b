"""Calls to other processes that run beside a manager's loop, each at most once at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Hashable
from typing import Any


class Errands:
    """Runs errands in the owner's task group; one that is still on its way is not sent again."""

    def __init__(self, tasks: asyncio.TaskGroup) -> None:
        self._tasks = tasks
        self._running: set[Hashable] = set()

    def send(self, errand: Hashable, work: Coroutine[Any, Any, None]) -> None:
        """Starts the work, unless this errand is on its way."""
        if errand in self._running:
            work.close()
            return
        self._running.add(errand)
        task = self._tasks.create_task(work)
        task.add_done_callback(lambda _: self._running.discard(errand))
