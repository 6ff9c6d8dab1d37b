"""When a replica is not put to sleep again, and what of a wake is believed."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

import pytest

from penstock.replica.adapters.keeper import Keeper
from penstock.replica.endings import WokeWrong
from penstock.replica.reporting.exposition import Memory
from penstock.replica.reporting.life import State
from penstock.replica.reporting.presence import Presence
from penstock.replica.reporting.sleeping import Sleeper
from penstock.replica.values import (
    Call,
    Chunk,
    EngineError,
    Event,
    Failed,
    Finished,
    SleepSettings,
    TokenGroup,
)
from tests.fakes.bridged import FACTS, FakeEngine

DEEPLY = SleepSettings(level=2)


class Napping(FakeEngine):
    """An engine that sleeps, and answers each call with the next of these tokens; the last stay."""

    def __init__(self, *answers: int, wakes: Exception | None = None) -> None:
        super().__init__(self._next)
        self._answers = list(answers)
        self._wakes = wakes
        self.slept: list[int] = []

    async def _next(self, call: Call) -> AsyncIterator[Event]:
        token = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if token < 0:
            yield Failed(500, "server_error", "broken", "it is broken")
        else:
            yield Chunk(b"{}", groups=(TokenGroup(0, (token, token)),))
            yield Finished(prompt_tokens=3, completion_tokens=2)

    def sleepless(self) -> str:
        return ""

    async def sleep(self, level: int) -> None:
        self.slept.append(level)

    async def wake(self) -> None:
        if self._wakes is not None:
            raise self._wakes


class Silent:
    """A board that nobody reads."""

    def set_load(self, load: bytes) -> None:
        pass


class Scales:
    """Says what is held, one after the other; the last stays."""

    def __init__(self, *megabytes: int) -> None:
        self._weights = list(megabytes)

    def __call__(self) -> Memory:
        held = self._weights.pop(0) if len(self._weights) > 1 else self._weights[0]
        return Memory(held, 0)


def sleeper(
    engine: Napping, settings: SleepSettings = DEEPLY, held: Scales | None = None
) -> tuple[Sleeper, Presence]:
    presence = Presence(Silent(), engine)
    presence.loaded(FACTS)

    async def nothing_runs(_: float) -> int:
        return 0

    keeper = Keeper(engine.adapters)
    made = Sleeper(engine, presence, keeper, "m", settings, nothing_runs, held or Scales(100))
    return made, presence


async def test_the_same_fixed_prompt_is_asked_greedily_and_out_of_no_cache() -> None:
    engine = Napping(7)
    made, presence = sleeper(engine)
    await made.sleep(1)
    assert (engine.slept, presence.state) == ([2], State.ASLEEP)
    assert await made.wake() == 1
    assert presence.state is State.READY
    before, after = engine.calls
    assert before.body == after.body
    assert json.loads(before.body)["temperature"] == 0
    assert before.tenant_salt != after.tenant_salt


@pytest.mark.parametrize(
    ("engine", "told"),
    [
        (Napping(7, 8), "the model answers otherwise"),
        (Napping(7, -1), "its probe failed: it is broken"),
        (Napping(7, wakes=EngineError("vLLM does not wake")), "vLLM does not wake"),
        (Napping(7, wakes=KeyError("weights")), "weights"),
    ],
)
async def test_whatever_is_wrong_after_a_sleep_ends_the_replica(engine: Napping, told: str) -> None:
    made, presence = sleeper(engine)
    await made.sleep(1)
    with pytest.raises(WokeWrong, match=told):
        await made.wake()
    assert presence.state is State.ASLEEP


async def test_one_that_cannot_be_asked_does_not_sleep_and_takes_no_more_calls() -> None:
    engine = Napping(-1)
    made, presence = sleeper(engine)
    with pytest.raises(EngineError, match="its probe failed"):
        await made.sleep(1)
    assert (engine.slept, presence.state) == ([], State.DRAINING)
    with pytest.raises(EngineError, match="it is draining, it does not wake"):
        await made.wake()


async def test_a_process_whose_memory_has_grown_since_its_first_wake_does_not_sleep_again() -> None:
    engine = Napping(7)
    settings = SleepSettings(level=1, growth_percent=10)
    made, presence = sleeper(engine, settings, Scales(100, 110, 111))
    for _ in range(3):
        await made.sleep(1)
        await made.wake()
    with pytest.raises(EngineError, match=r"grown by 11 % \(sleep_growth_percent\)"):
        await made.sleep(1)
    assert presence.state is State.READY
