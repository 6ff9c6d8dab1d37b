"""The table of a replica's adapters, over an engine that a test moves."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.adapters.slots import Claim
from penstock.replica.adapters.table import AdapterTable, load_named
from penstock.replica.adapters.values import AdapterRoom, AdapterUnavailable, Code
from penstock.replica.values import AdapterSource, CannotLoad, EngineError
from tests.fakes.adapter_weights import FakeWeights


class Clock:
    """Seconds that a test lets pass."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def _adapter(name: str, digest: str = "", *, pinned: bool = False) -> AdapterSource:
    return AdapterSource(f"{name}@1", digest=digest or f"digest of {name}", pinned=pinned)


def _table(slots: int = 2, timeout: float = 30.0) -> tuple[AdapterTable, FakeWeights, Clock]:
    weights, clock = FakeWeights(), Clock()
    table = AdapterTable(weights, timeout, clock)
    table.open(slots)
    return table, weights, clock


def _names(table: AdapterTable) -> list[str]:
    return [adapter.name for adapter in table.held()]


@contextlib.contextmanager
def _unavailable(code: Code, words: str | None = None) -> Iterator[None]:
    with pytest.raises(AdapterUnavailable, match=words) as caught:
        yield
    assert caught.value.code is code


async def test_what_is_loaded_is_held_with_its_digest() -> None:
    table, _, _ = _table()
    await table.load(AdapterSource("a@1", "/somewhere"))
    assert table.held() == (AdapterSource("a@1", "/somewhere", "of /somewhere"),)
    assert table.find("b@1") is None


async def test_what_is_held_is_not_loaded_again() -> None:
    table, weights, _ = _table()
    await table.load(_adapter("a"))
    await table.load(_adapter("a"))
    assert weights.prepared == ["a@1"]


async def test_all_that_want_an_adapter_wait_for_one_load() -> None:
    table, weights, _ = _table()
    weights.slow.add("a@1")
    async with asyncio.TaskGroup() as tasks:
        for _ in range(5):
            tasks.create_task(table.load(_adapter("a")))
        await asyncio.sleep(0)
        weights.go.set()
    assert weights.prepared == ["a@1"]


async def test_who_leaves_does_not_end_the_load_for_others() -> None:
    table, weights, _ = _table()
    weights.slow.add("a@1")
    async with asyncio.TaskGroup() as tasks:
        first = tasks.create_task(table.load(_adapter("a")))
        other = tasks.create_task(table.load(_adapter("a")))
        await asyncio.sleep(0)
        first.cancel()
        await asyncio.wait({first})
        assert not other.done()
        weights.go.set()
    assert _names(table) == ["a@1"]


async def test_a_load_that_nobody_waits_for_any_more_is_finished() -> None:
    table, weights, _ = _table()
    weights.slow.add("a@1")
    async with asyncio.TaskGroup() as tasks:
        alone = tasks.create_task(table.load(_adapter("a")))
        await asyncio.sleep(0)
        alone.cancel()
    weights.go.set()
    await table.load(_adapter("a"))
    assert weights.prepared == ["a@1"]


async def test_bytes_come_side_by_side_and_the_engine_is_changed_by_one_at_a_time() -> None:
    table, weights, _ = _table(slots=3)
    weights.slow |= {"a@1", "b@1", "c@1"}
    async with asyncio.TaskGroup() as tasks:
        for name in "abc":
            tasks.create_task(table.load(_adapter(name)))
        while len(weights.prepared) < 3:
            await asyncio.sleep(0)
        weights.go.set()
    assert sorted(_names(table)) == ["a@1", "b@1", "c@1"]


async def test_a_call_passes_loads_that_take_long() -> None:
    table, weights, _ = _table()
    weights.slow.add("a@1")
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(table.load(_adapter("a")))
        await table.load(_adapter("b"))
        assert _names(table) == ["b@1"]
        weights.go.set()


async def test_the_least_recently_used_makes_room() -> None:
    table, weights, _ = _table()
    await table.load(_adapter("a"))
    await table.load(_adapter("b"))
    weights.touch("a@1")
    await table.load(_adapter("c"))
    assert weights.removed == ["b@1"]
    assert _names(table) == ["a@1", "c@1"]


async def test_what_the_engine_does_not_let_go_of_keeps_its_slot() -> None:
    table, weights, _ = _table(slots=1)
    await table.load(_adapter("a"))
    weights.kept["a@1"] = EngineError("it is busy")
    with _unavailable(Code.LOAD_FAILED, "it is busy"):
        await table.load(_adapter("b"))
    assert (_names(table), list(weights.held)) == (["a@1"], ["a@1"])
    del weights.kept["a@1"]
    await table.load(_adapter("c"))
    assert (_names(table), list(weights.held)) == (["c@1"], ["c@1"])


async def test_nothing_in_use_or_pinned_makes_room() -> None:
    table, weights, _ = _table()
    await table.load(_adapter("a", pinned=True))
    await table.load(_adapter("b"))
    weights.enter("b@1")
    with _unavailable(Code.SLOTS_FULL, "all 2 slots for adapters are pinned or in use"):
        await table.load(_adapter("c"))
    assert weights.prepared == ["a@1", "b@1"], "its bytes are not even asked for"
    assert not table.failed(), "it is no fault of the adapter"
    weights.leave("b@1")
    await table.load(_adapter("c"))
    assert _names(table) == ["a@1", "c@1"]


async def test_what_is_being_loaded_makes_no_room() -> None:
    table, weights, _ = _table(slots=1)
    weights.slow.add("a@1")
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(table.load(_adapter("a")))
        await asyncio.sleep(0)
        with _unavailable(Code.SLOTS_FULL):
            await table.load(_adapter("b"))
        weights.go.set()


async def test_a_call_is_not_refused_for_a_preload_that_is_under_way() -> None:
    table, weights, _ = _table(slots=1)
    weights.slow.add("a@1")

    async def preload() -> None:
        with _unavailable(Code.SLOTS_FULL):
            await table.load(_adapter("a"), Claim.PRELOADED)

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(preload())
        await asyncio.sleep(0)
        await table.load(_adapter("b"))
        weights.enter("b@1")
        weights.go.set()
    assert _names(table) == ["b@1"]


async def test_one_that_came_into_use_meanwhile_stays_and_another_leaves() -> None:
    table, weights, _ = _table()
    await table.load(_adapter("a"))
    await table.load(_adapter("b"))
    weights.stuck.add("a@1")
    await table.load(_adapter("c"))
    assert _names(table) == ["a@1", "c@1"]
    weights.stuck.add("c@1")
    with _unavailable(Code.SLOTS_FULL):
        await table.load(_adapter("d"))
    assert _names(table) == ["a@1", "c@1"]


async def test_a_call_lends_its_claim_to_a_load_that_is_under_way() -> None:
    table, weights, _ = _table(slots=1)
    weights.slow.add("b@1")
    async with asyncio.TaskGroup() as tasks:
        loads = [tasks.create_task(table.load(_adapter("b"), Claim.SPARE))]
        await asyncio.sleep(0)
        table._held["a@1"] = _adapter("a")
        weights.held["a@1"], weights.calls["a@1"], weights.last["a@1"] = "", 0, 0
        loads.append(tasks.create_task(table.load(_adapter("b"))))
        await asyncio.sleep(0)
        weights.go.set()
    assert _names(table) == ["b@1"]


async def test_other_bytes_under_one_name_are_refused_held_or_on_their_way() -> None:
    table, weights, _ = _table()
    weights.slow.add("a@1")
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(table.load(_adapter("a")))
        await asyncio.sleep(0)
        with _unavailable(Code.MISMATCH, "digest of a, asked for is other"):
            await table.load(_adapter("a", "other"))
        weights.go.set()
    with _unavailable(Code.MISMATCH):
        await table.load(_adapter("a", "other"))
    await table.load(AdapterSource("a@1"))
    assert _names(table) == ["a@1"]


async def test_a_load_that_fails_tells_all_that_wait_and_leaves_nothing() -> None:
    table, weights, clock = _table()
    weights.breaks("a@1")
    outcomes = await asyncio.gather(
        *(table.load(_adapter("a")) for _ in range(3)), return_exceptions=True
    )
    told = "The adapter a@1 cannot be loaded here: no such file"
    assert [str(outcome) for outcome in outcomes] == [told] * 3
    assert weights.prepared == ["a@1"]
    assert table.held() == ()
    (failure,) = table.failed()
    assert (failure.name, failure.digest, str(failure.error)) == ("a@1", "digest of a", told)
    weights.broken.clear()
    clock.now += 1
    await table.load(_adapter("a"))
    assert table.failed() == ()


async def test_a_call_has_a_failed_load_tried_again_once_a_second() -> None:
    table, weights, clock = _table()
    weights.breaks("a@1")
    for wait in (0, 0.9, 0.1, 0.5):
        clock.now += wait
        with _unavailable(Code.LOAD_FAILED):
            await table.load(_adapter("a"))
    assert weights.prepared == ["a@1"] * 2
    weights.broken.clear()
    await table.load(_adapter("a", "other bytes"))


async def test_what_an_engine_never_should_raise_is_a_failed_load() -> None:
    table, weights, _ = _table()
    weights.broken["a@1"] = RuntimeError("half of it")
    with _unavailable(Code.LOAD_FAILED, "RuntimeError"):
        await table.load(_adapter("a"))


async def test_nobody_waits_for_bytes_longer_than_the_time_limit() -> None:
    table, weights, _ = _table(timeout=0.01)
    weights.slow.add("a@1")
    with _unavailable(Code.LOAD_TIMEOUT, r"a@1 was not loaded within 0\.01 s"):
        await table.load(_adapter("a"))


async def test_an_adapter_in_use_is_not_unloaded() -> None:
    table, weights, _ = _table()
    await table.load(_adapter("a"))
    weights.enter("a@1")
    assert not await table.unload("a@1")
    assert _names(table) == ["a@1"]
    weights.leave("a@1")
    assert await table.unload("a@1")
    assert await table.unload("never-there@1")
    assert _names(table) == []


async def test_each_change_is_told() -> None:
    table, weights, clock = _table()
    told: list[tuple[str, ...]] = []
    table.watch(lambda: told.append((*_names(table), *(f.name for f in table.failed()))))
    weights.breaks("b@1")
    await table.load(_adapter("a"))
    with _unavailable(Code.LOAD_FAILED):
        await table.load(_adapter("b"))
    await table.unload("a@1")
    assert told == [("a@1",), ("a@1", "b@1"), ("b@1",)]
    weights.broken.clear()
    clock.now += 1
    await table.load(_adapter("b"))
    assert told[-1] == ("b@1",), "held, and no failure any more"
    assert not table.failed()


async def test_before_it_is_open_and_once_it_is_closed_it_loads_nothing() -> None:
    table = AdapterTable(FakeWeights())
    with pytest.raises(EngineError, match="not started"):
        await table.load(_adapter("a"))
    table.open(1)
    table.close()
    with pytest.raises(EngineError, match="not started"):
        await table.load(_adapter("a"))


async def test_an_engine_without_slots_says_which_setting_would_give_it_some() -> None:
    table, _, _ = _table(slots=0)
    with _unavailable(Code.SLOTS_FULL, "set max_adapters"):
        await table.load(_adapter("a"))


async def test_a_named_adapter_given_as_a_directory_is_fatal_and_one_by_digest_is_told() -> None:
    table, weights, _ = _table()
    weights.breaks("a@1")
    with pytest.raises(CannotLoad, match="a@1 cannot be loaded here: no such file"):
        await load_named(table, AdapterSource("a@1", "/somewhere"))
    await load_named(table, _adapter("a"))
    assert [failure.name for failure in table.failed()] == ["a@1"]


def test_how_many_slots_an_engine_has() -> None:
    named = [_adapter("a"), _adapter("b")]
    assert AdapterRoom().slots_for(()) == 0
    assert AdapterRoom().slots_for(named) == 2
    assert AdapterRoom(slots=3).slots_for(named) == 3
    assert AdapterRoom(slots=1).slots_for(named) == 2
    assert AdapterRoom(max_rank=8).slots_for(()) == 4
    assert AdapterRoom(slots=2, max_rank=8).slots_for(()) == 2


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.tuples(st.integers(0, 4), st.sampled_from(["call", "break", "cancel", "drop"]))),
    st.integers(1, 3),
)
def test_whatever_happens_slots_suffice_and_who_has_an_adapter_keeps_it(
    happenings: list[tuple[int, str]], slots: int
) -> None:
    async def live() -> None:
        table, weights, clock = _table(slots)

        async def call(name: str) -> None:
            adapter = _adapter(name)
            try:
                while table.find(adapter.name) is None:
                    await table.load(adapter)
            except AdapterUnavailable:
                return
            weights.enter(adapter.name)
            try:
                for _ in range(3):
                    await asyncio.sleep(0)
                    assert weights.held[adapter.name] == adapter.digest
                    assert len(weights.held) <= slots
            finally:
                weights.leave(adapter.name)

        async with asyncio.TaskGroup() as tasks:
            calls = []
            for number, what in happenings:
                name = "abcde"[number]
                clock.now += 0.4
                if what == "call":
                    calls.append(tasks.create_task(call(name)))
                elif what == "drop":
                    tasks.create_task(table.unload(f"{name}@1"))
                elif what == "cancel" and calls:
                    calls[number % len(calls)].cancel()
                elif what == "break":
                    weights.breaks(f"{name}@1")
                await asyncio.sleep(0)
        assert {adapter.name: adapter.digest for adapter in table.held()} == weights.held

    asyncio.run(live())
