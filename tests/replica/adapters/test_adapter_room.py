"""Calls that may wait for room have it as soon as another ends, and nobody else waits."""

from __future__ import annotations

import asyncio

import pytest

from penstock.replica.adapters.table import AdapterTable
from penstock.replica.adapters.values import AdapterUnavailable, Code
from tests.replica.adapters.test_adapter_table import _adapter, _names, _table


async def test_who_may_wait_for_room_has_it_when_a_call_ends() -> None:
    table, weights, _ = _table(slots=1)
    await table.load(_adapter("a"))
    weights.enter("a@1")
    async with asyncio.TaskGroup() as tasks:
        waiting = tasks.create_task(table.load(_adapter("b"), wait=5))
        await _begun(table, "b@1")
        assert await _refused(table, "b", wait=0) is Code.SLOTS_FULL
        assert await _refused(table, "c", wait=0) is Code.SLOTS_FULL
        assert not waiting.done()
        weights.leave("a@1")
    assert _names(table) == ["b@1"]


async def test_who_may_not_wait_is_refused_though_the_load_began_before_there_was_no_room() -> None:
    table, weights, _ = _table(slots=1)
    await table.load(_adapter("a"))
    weights.enter("a@1")
    weights.slow.add("b@1")
    async with asyncio.TaskGroup() as tasks:
        patient = tasks.create_task(table.load(_adapter("b"), wait=3600))
        await _begun(table, "b@1")
        hasty = tasks.create_task(_refused(table, "b", wait=0))
        while weights.prepared != ["a@1", "b@1"]:
            await asyncio.sleep(0)
        weights.go.set()
        assert await hasty is Code.SLOTS_FULL
        assert not patient.done()
        weights.leave("a@1")
    assert _names(table) == ["b@1"]


async def test_nobody_waits_for_room_longer_than_he_may() -> None:
    table, weights, clock = _table(slots=1)
    await table.load(_adapter("a"))
    weights.enter("a@1")
    async with asyncio.TaskGroup() as tasks:
        waiting = tasks.create_task(_refused(table, "b", wait=5))
        await _begun(table, "b@1")
        assert await _refused(table, "b", wait=0) is Code.SLOTS_FULL
        clock.now += 5
        assert await waiting is Code.SLOTS_FULL
    assert _names(table) == ["a@1"]


async def test_one_of_those_that_are_never_idle_takes_no_new_calls_until_it_has_left() -> None:
    table, weights, clock = _table()
    for name in "ab":
        await table.load(_adapter(name))
        weights.enter(f"{name}@1")
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(table.load(_adapter("c"), wait=3600))
        await _begun(table, "c@1")
        assert await _refused(table, "c", wait=0) is Code.SLOTS_FULL
        assert table.is_open("a@1")
        clock.now += 1
        await _closed(table, "a@1")
        assert weights.closed == {"a@1"}
        assert table.is_open("b@1")
        assert await _refused(table, "a", wait=0) is Code.SLOTS_FULL
        again = tasks.create_task(table.load(_adapter("a"), wait=3600))
        await _begun(table, "a@1")
        weights.leave("a@1")
        await again
    assert weights.removed == ["a@1", "c@1"]
    assert table.is_open("a@1")
    assert not weights.closed


async def test_what_was_closed_is_opened_where_nobody_waits_any_more() -> None:
    table, weights, clock = _table(slots=1)
    await table.load(_adapter("a"))
    weights.enter("a@1")
    async with asyncio.TaskGroup() as tasks:
        waiting = tasks.create_task(_refused(table, "b", wait=5))
        await _begun(table, "b@1")
        assert await _refused(table, "b", wait=0) is Code.SLOTS_FULL
        clock.now += 2
        await _closed(table, "a@1")
        again = tasks.create_task(table.load(_adapter("a"), wait=3600))
        clock.now += 3
        assert await waiting is Code.SLOTS_FULL
        await again
    assert table.is_open("a@1")
    assert weights.removed == []


async def test_what_is_pinned_meanwhile_is_opened() -> None:
    table, weights, clock = _table()
    for name in "ab":
        await table.load(_adapter(name))
        weights.enter(f"{name}@1")
    async with asyncio.TaskGroup() as tasks:
        waiting = tasks.create_task(table.load(_adapter("c"), wait=3600))
        await _begun(table, "c@1")
        assert await _refused(table, "c", wait=0) is Code.SLOTS_FULL
        clock.now += 1
        await _closed(table, "a@1")
        table.wish({"a@1": _adapter("a", pinned=True)})
        assert table.is_open("a@1")
        await _closed(table, "b@1")
        weights.leave("b@1")
        await waiting
    assert _names(table) == ["a@1", "c@1"]


async def test_nobody_waits_for_room_that_is_pinned() -> None:
    table, _, _ = _table(slots=1)
    await table.load(_adapter("a", pinned=True))
    assert await _refused(table, "b", wait=3600) is Code.SLOTS_FULL


async def _begun(table: AdapterTable, name: str) -> None:
    while not table.is_loading(name):
        await asyncio.sleep(0)


async def _closed(table: AdapterTable, name: str) -> None:
    while table.is_open(name):
        await asyncio.sleep(0)


async def _refused(table: AdapterTable, name: str, wait: float) -> Code:
    with pytest.raises(AdapterUnavailable) as caught:
        await table.load(_adapter(name), wait=wait)
    return caught.value.code
