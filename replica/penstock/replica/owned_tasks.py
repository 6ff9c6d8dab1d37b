"""Tasks that outlive whoever asks for them, with one owner that ends them."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any


class OwnedTasks:
    """A TaskGroup without a scope: for an object that is made before the loop's groups are, and
    closed by whoever owns it. A task's error is for those that look at the task."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Begins the work."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._over)
        return task

    def close(self) -> None:
        """Cancels what runs."""
        for task in self._tasks:
            task.cancel()

    def _over(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # looked at: asyncio need not complain that nobody was
