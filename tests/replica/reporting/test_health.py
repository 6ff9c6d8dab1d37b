"""Deep health and the watch for hanging engines, on a fake engine."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Literal

import pytest

from penstock.replica.adapters.table import AdapterTable
from penstock.replica.endings import EngineHung
from penstock.replica.engine import Sink, Sleepless, Unmoved, Unresumed
from penstock.replica.reporting.health import Health
from penstock.replica.reporting.progress import Patience
from penstock.replica.values import (
    Call,
    Chunk,
    Death,
    EngineError,
    EngineFacts,
    EngineKind,
    Event,
    Failed,
    Finished,
    Head,
    LoadFigures,
)
from tests.fakes.sinks import write
from tests.fakes.waiting import until

_PATIENCE = Patience(idle=0.01, busy=60)


class FakeEngine(Sleepless, Unmoved, Unresumed):
    """Answers every call with `events`; `probes` says what each probe does, `tokens` how many it
    has made once it was asked. With `numbers` it pools: so many come out, or it says why not."""

    def __init__(
        self,
        events: tuple[Event | Literal["waits"], ...] = (),
        probes: tuple[str, ...] = (),
        tokens: int = 0,
        numbers: int | str | None = None,
    ) -> None:
        self._numbers = numbers
        self._events = events
        self._tokens = tokens
        self._probes = iter(probes)
        self.calls: list[Call] = []

    async def start(self) -> EngineFacts:
        raise NotImplementedError

    async def answer(self, call: Call, sink: Sink) -> None:
        self.calls.append(call)
        for event in self._events:
            if event == "waits":
                await asyncio.Event().wait()
            else:
                write(event, sink)

    def load(self) -> LoadFigures:
        return LoadFigures(tokens=self._tokens if self.calls else 0)

    def watch(self, changed: Callable[[], None]) -> None:
        raise NotImplementedError

    def cpu_seconds(self) -> float:
        return 0.0

    async def metrics(self) -> str:
        raise NotImplementedError

    def kind(self) -> EngineKind:
        return EngineKind.TEXT if self._numbers is None else EngineKind.VECTORS

    async def pool(self, text: str, *, priority: int = 0) -> int:
        if isinstance(self._numbers, int):
            return self._numbers
        raise EngineError(self._numbers or "it generates")

    async def reach(self) -> None:
        return

    async def probe(self) -> None:
        match next(self._probes, "hangs"):
            case "dead":
                raise EngineError("it is dead")
            case "hangs":
                await asyncio.Event().wait()

    async def died(self) -> Death:
        raise NotImplementedError

    @property
    def adapters(self) -> AdapterTable:
        raise NotImplementedError

    async def stop(self) -> None:
        return


async def test_tokens_that_come_out_are_health() -> None:
    engine = FakeEngine((Head(200, "application/json"), Chunk(b"{}"), Finished(1, 5)))
    verdict = await Health(engine, "m").deep()
    assert verdict.ok
    assert verdict.detail == ""
    (call,) = engine.calls
    body = json.loads(call.body)
    assert (body["max_tokens"], body["temperature"], body["model"]) == (5, 0, "m")


@pytest.mark.parametrize(
    ("events", "detail"),
    [
        ((Failed(500, "server_error", "x", "broken"),), "broken"),
        ((Finished(1, 0),), "the answer had no tokens"),
        ((Chunk(b"{}"),), "The engine's answer stopped half-way."),
    ],
)
async def test_anything_else_is_not_and_says_why(events: tuple[Event, ...], detail: str) -> None:
    verdict = await Health(FakeEngine(events), "m").deep()
    assert not verdict.ok
    assert verdict.detail == detail


@pytest.mark.parametrize(
    ("numbers", "ok", "detail"),
    [(384, True, ""), (0, False, "the answer had no numbers"), ("it broke", False, "it broke")],
)
async def test_a_model_that_pools_is_asked_for_numbers_and_for_no_tokens(
    numbers: int | str, detail: str, *, ok: bool
) -> None:
    engine = FakeEngine((_NO_ROOM,), numbers=numbers)
    verdict = await Health(engine, "m").deep()
    assert (verdict.ok, verdict.detail) == (ok, detail)
    assert engine.calls == []


_NO_ROOM = Failed(503, "server_error", "overloaded", "the queue is full", retryable=True)


@pytest.mark.parametrize("events", [(_NO_ROOM,), ("waits",)])
@pytest.mark.parametrize(("made", "ok"), [(0, False), (7, True)])
async def test_an_engine_that_is_full_is_well_while_it_makes_tokens_for_others(
    events: tuple[Event | Literal["waits"], ...], made: int, *, ok: bool
) -> None:
    engine = FakeEngine(events, tokens=made)
    verdict = await Health(engine, "m", patience=0.05).deep()
    assert verdict.ok is ok
    assert verdict.detail


async def test_a_deep_check_goes_before_all_that_waits() -> None:
    engine = FakeEngine((Finished(1, 5),))
    await Health(engine, "m").deep()
    assert engine.calls[0].priority < -1_000_000


async def test_a_deep_check_behind_all_calls_is_one_for_all_who_ask_for_it_at_a_time() -> None:
    engine = FakeEngine((Finished(1, 5),))
    health = Health(engine, "m")
    verdicts = await asyncio.gather(*(health.deep_behind() for _ in range(5)))
    assert all(verdict.ok for verdict in verdicts)
    assert [call.priority > 1_000_000 for call in engine.calls] == [True]


async def test_a_deep_check_does_not_wait_for_one_behind_all_calls() -> None:
    engine = FakeEngine(("waits",))
    health = Health(engine, "m", patience=60)
    behind, before = (
        asyncio.ensure_future(health.deep_behind()),
        asyncio.ensure_future(health.deep()),
    )
    await until(lambda: len(engine.calls) == 2, "both are asked", seconds=20)
    behind.cancel()
    before.cancel()


async def test_an_engine_whose_probe_does_not_return_hangs() -> None:
    engine = FakeEngine(probes=("fine", "fine", "hangs"))
    with pytest.raises(EngineHung, match="no progress and used no CPU"):
        await Health(engine, "m").watch(every=0.001, patience=_PATIENCE)


async def test_a_probe_that_finds_a_dead_engine_leaves_the_verdict_to_its_death() -> None:
    engine = FakeEngine(probes=("dead", "hangs"))
    with pytest.raises(EngineHung):
        await Health(engine, "m").watch(every=0.001, patience=_PATIENCE)
