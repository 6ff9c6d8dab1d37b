"""Calls to other processes that run beside a manager's loop, each at most once at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Hashable
from typing import Any


class SingleFlight:
    """Runs calls in the owner's task group; one that is still on its way is not made again."""

    def __init__(self, tasks: asyncio.TaskGroup) -> None:
        self._tasks = tasks
        self._pending: set[Hashable] = set()

    def start(self, call: Hashable, work: Coroutine[Any, Any, object]) -> bool:
        """Starts the work, unless this call is pending; returns whether it did."""
        if call in self._pending:
            work.close()
            return False
        self._pending.add(call)
        task = self._tasks.create_task(work)
        task.add_done_callback(lambda _: self._pending.discard(call))
        return True
