"""When a replica's load is published."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import cast

from penstock.replica.engine import Engine, Unmoved, Unresumed
from penstock.replica.reporting.presence import Presence
from penstock.replica.values import LoadFigures
from penstock.v1 import inference_pb2
from tests.fakes.bridged import FACTS


class Stepping(Unmoved, Unresumed):
    """An engine whose steps a test makes."""

    def __init__(self) -> None:
        self.steps = 0
        self.step_made: Callable[[], None] = lambda: None
        self.adapters = SimpleNamespace(held=lambda: (), slots=0, watch=lambda _told: None)

    def watch(self, changed: Callable[[], None]) -> None:
        """See `Engine`."""
        self.step_made = changed

    def load(self) -> LoadFigures:
        """See `Engine`."""
        return LoadFigures(steps=self.steps)

    def step(self) -> None:
        """One more."""
        self.steps += 1
        self.step_made()


class Board:
    """Keeps what is published."""

    def __init__(self) -> None:
        self.told: list[int] = []
        self._told_at = math.inf

    def set_load(self, load: bytes) -> None:
        """See `presence.Board`."""
        self.told.append(inference_pb2.Load.FromString(load).steps)
        self._told_at = time.monotonic()

    def may_be_told_again(self) -> bool:
        """It is long enough since it was told last."""
        return time.monotonic() - self._told_at > 0.02


async def step_and_flush(engine: Stepping, board: Board) -> int:
    """The figures that are known when the events of one more step leave: a stream that the step
    wakes writes them in one turn of the loop, and they leave in the next."""
    loop = asyncio.get_running_loop()
    left: asyncio.Future[int] = loop.create_future()
    loop.call_soon(lambda: loop.call_soon(lambda: left.set_result(board.told[-1])))
    engine.step()
    return await left


async def test_a_steps_figures_are_published_before_its_events_leave() -> None:
    engine, board = Stepping(), Board()
    presence = Presence(board, cast("Engine", engine))
    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
        publishing = tasks.create_task(presence.keep_publishing())
        while not board.may_be_told_again():
            await asyncio.sleep(0)
        assert await step_and_flush(engine, board) == 1
        publishing.cancel()


async def test_many_steps_within_a_moment_are_published_once_with_the_last() -> None:
    engine, board = Stepping(), Board()
    presence = Presence(board, cast("Engine", engine))
    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
        publishing = tasks.create_task(presence.keep_publishing())
        for _ in range(50):
            engine.step()
            await asyncio.sleep(0)
        while board.told[-1] != 50:
            await asyncio.sleep(0)
        publishing.cancel()
    assert len(board.told) <= 4


class SelfTesting(Stepping):
    """An engine whose self-test ends when a test says so."""

    def __init__(self) -> None:
        super().__init__()
        self.verdict: str | None = None

    def no_resume(self) -> str | None:
        """See `Engine`."""
        return self.verdict

    def self_test_failed(self) -> bool:
        """See `Engine`."""
        return bool(self.verdict)


class LastLoad:
    """Keeps the last load."""

    def __init__(self) -> None:
        self.load = inference_pb2.Load()

    def set_load(self, load: bytes) -> None:
        """See `presence.Board`."""
        self.load = inference_pb2.Load.FromString(load)


def test_that_it_resumes_is_told_once_its_self_test_has_ended_and_not_before() -> None:
    engine, board, told = SelfTesting(), LastLoad(), list[tuple[str, bool]]()
    presence = Presence(board, cast("Engine", engine), lambda *said: told.append(said))
    presence.loaded(FACTS)
    assert (board.load.resumes, told) == (False, [])
    engine.verdict = ""
    presence.publish()
    presence.publish()
    assert (board.load.resumes, told) == (True, [("", False)])


def test_a_self_test_that_failed_is_told_with_its_reason() -> None:
    engine, board, told = SelfTesting(), LastLoad(), list[tuple[str, bool]]()
    presence = Presence(board, cast("Engine", engine), lambda *said: told.append(said))
    presence.loaded(FACTS)
    engine.verdict = "seeded: differs at token 3"
    presence.publish()
    assert (board.load.resumes, told) == (False, [("seeded: differs at token 3", True)])
