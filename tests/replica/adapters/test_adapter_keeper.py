"""What a replica is to hold, seen to beside its calls."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from penstock.replica.adapters.keeper import Keeper
from penstock.replica.adapters.table import AdapterTable
from penstock.replica.values import AdapterSource
from tests.fakes.adapter_weights import FakeWeights


def _adapter(name: str, *, pinned: bool = False, digest: str = "") -> AdapterSource:
    return AdapterSource(f"{name}@1", digest=digest or f"digest of {name}", pinned=pinned)


class _Kept:
    """A keeper at work, and what it works on."""

    def __init__(self, slots: int, named: tuple[AdapterSource, ...]) -> None:
        self.weights = FakeWeights()
        self.now = 100.0
        self.table = AdapterTable(self.weights, clock=lambda: self.now)
        self.table.open(slots)
        self.keeper = Keeper(self.table, named)
        self._changed = asyncio.Event()
        self.table.watch(self._changed.set)

    def holds(self) -> set[str]:
        return {adapter.name for adapter in self.table.held()}

    async def until(self, so: Callable[[], bool]) -> None:
        """Returns when that is so; fails after five seconds."""
        async with asyncio.timeout(5):
            while not so():
                self._changed.clear()
                await self._changed.wait()

    async def settled(self) -> None:
        """Lets everything that can happen happen."""
        for _ in range(60):
            await asyncio.sleep(0)


@asynccontextmanager
async def keeping(slots: int, *named: AdapterSource) -> AsyncIterator[_Kept]:
    """A keeper at work."""
    kept = _Kept(slots, named)
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(kept.keeper.run())
        yield kept
        running.cancel()


async def test_what_it_begins_with_is_loaded() -> None:
    async with keeping(2, _adapter("a"), _adapter("b")) as kept:
        await kept.until(lambda: kept.holds() == {"a@1", "b@1"})


async def test_what_is_to_be_held_is_loaded_in_its_order_pinned_ones_first() -> None:
    async with keeping(2) as kept:
        kept.keeper.keep([_adapter("a"), _adapter("b"), _adapter("c", pinned=True)])
        await kept.until(lambda: len(kept.holds()) == 2)
        await kept.settled()
        assert kept.weights.prepared == ["c@1", "a@1"]


async def test_a_new_wish_takes_the_slot_of_a_guest_and_never_that_of_another_wish() -> None:
    async with keeping(2, _adapter("a")) as kept:
        await kept.until(lambda: kept.holds() == {"a@1"})
        await kept.table.load(_adapter("guest"))
        kept.keeper.keep([_adapter("a"), _adapter("b"), _adapter("c")])
        await kept.until(lambda: kept.holds() == {"a@1", "b@1"})
        await kept.settled()
        assert kept.weights.removed == ["guest@1"]


async def test_a_wish_that_had_to_leave_returns_to_a_free_slot_alone() -> None:
    async with keeping(1, _adapter("a")) as kept:
        await kept.until(lambda: kept.holds() == {"a@1"})
        await kept.table.load(_adapter("guest"))
        await kept.settled()
        assert kept.holds() == {"guest@1"}, "else calls for two would load in turns"
        assert await kept.table.unload("guest@1")
        await kept.until(lambda: kept.holds() == {"a@1"})


async def test_a_pinned_wish_waits_until_a_slot_is_idle() -> None:
    async with keeping(1) as kept:
        await kept.table.load(_adapter("guest"))
        kept.weights.enter("guest@1")
        kept.keeper.keep([_adapter("a", pinned=True)])
        await kept.settled()
        assert kept.holds() == {"guest@1"}
        kept.weights.leave("guest@1")
        await kept.until(lambda: kept.holds() == {"a@1"})


async def test_what_is_dropped_leaves_when_nobody_uses_it() -> None:
    async with keeping(2) as kept:
        await kept.table.load(_adapter("a"))
        await kept.table.load(_adapter("b"))
        kept.weights.enter("a@1")
        kept.keeper.keep([], dropped=["a@1", "b@1", "never-there@1"])
        await kept.until(lambda: kept.holds() == {"a@1"})
        kept.weights.leave("a@1")
        await kept.until(lambda: not kept.holds())


async def test_what_is_dropped_and_wished_for_again_stays() -> None:
    async with keeping(1) as kept:
        await kept.table.load(_adapter("a"))
        kept.weights.enter("a@1")
        kept.keeper.keep([], dropped=["a@1"])
        await kept.settled()
        kept.keeper.keep([_adapter("a")])
        kept.weights.leave("a@1")
        await kept.settled()
        assert kept.holds() == {"a@1"}


async def test_what_fails_is_not_tried_again_until_the_list_changes() -> None:
    async with keeping(2) as kept:
        kept.weights.breaks("a@1")
        kept.keeper.keep([_adapter("a")])
        await kept.until(lambda: bool(kept.table.failed()))
        kept.keeper.keep([_adapter("a")])
        await kept.settled()
        assert kept.weights.prepared == ["a@1"]
        kept.weights.broken.clear()
        kept.keeper.keep([_adapter("a"), _adapter("b")])
        await kept.until(lambda: kept.holds() == {"a@1", "b@1"})
        assert not kept.table.failed()


async def test_what_fails_is_tried_again_after_ever_longer_pauses() -> None:
    async with keeping(1) as kept:
        kept.weights.breaks("a@1")
        kept.keeper.keep([_adapter("a")])
        await kept.settled()
        pauses = []
        for _ in range(8):
            pauses.append(kept.table.failures.pause(_adapter("a")))
            kept.now += pauses[-1]
            kept.keeper._look.set()
            await kept.settled()
        assert pauses == [1, 2, 4, 8, 16, 32, 60, 60]
        assert len(kept.weights.prepared) == 9


async def test_other_bytes_under_a_held_name_are_told_and_change_nothing() -> None:
    async with keeping(1) as kept:
        await kept.table.load(_adapter("a"))
        kept.keeper.keep([_adapter("a", digest="other")])
        await kept.until(lambda: bool(kept.table.failed()))
        assert "here with other bytes" in str(kept.table.failed()[0].error)
        assert kept.holds() == {"a@1"}


async def test_what_is_unloaded_by_hand_is_not_brought_back() -> None:
    async with keeping(1, _adapter("a")) as kept:
        await kept.until(lambda: kept.holds() == {"a@1"})
        assert await kept.table.unload("a@1")
        kept.keeper.forget("a@1")
        await kept.settled()
        assert not kept.holds()


async def test_a_pin_is_taken_away_with_the_wish() -> None:
    async with keeping(1) as kept:
        kept.keeper.keep([_adapter("a", pinned=True)])
        await kept.until(lambda: kept.holds() == {"a@1"})
        assert kept.table.held()[0].pinned
        kept.keeper.keep([_adapter("a")])
        assert not kept.table.held()[0].pinned
        await kept.table.load(_adapter("b"))
        assert kept.holds() == {"b@1"}
