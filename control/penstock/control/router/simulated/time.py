"""An event loop whose time jumps to the next thing that is to happen."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class _Jumping(selectors.SelectSelector):
    """Waits for nothing, and says that the time has passed."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """What is there now."""
        if timeout is None:
            raise RuntimeError("everything waits for something that will never happen")
        self.now += max(0.0, timeout)
        return super().select(0)


class _Loop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._jumping = _Jumping()
        super().__init__(self._jumping)

    def time(self) -> float:
        return self._jumping.now


def run_in_no_time(main: Coroutine[Any, Any, T]) -> T:
    """As asyncio.run; who sleeps there wakes at once, in the right order."""
    with asyncio.Runner(loop_factory=_Loop) as runner:
        return runner.run(main)
