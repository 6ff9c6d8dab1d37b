"""Whoever asks for a change may be cancelled at any moment: store and view stay the same."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest

from penstock.control.managers.cluster import Cluster
from penstock.control.managers.keeper import Keeper
from penstock.control.managers.tenancy.tokens import TokenManager, new_secret
from penstock.control.managers.whole import Whole
from penstock.control.state.cluster import ClusterView
from penstock.control.state.tenancy.tokens import Role
from penstock.control.store.store import Author, Change
from tests.fakes.control_clock import ManualClock
from tests.fakes.control_store import MemoryStore
from tests.fakes.control_values import contradict, deployment, node, replica, spec

ADMIN = Author("admin", "test")
MOMENTS = range(1, 12)  # steps of the loop, more than any of these changes takes


class SlowStore(MemoryStore):
    """Takes some steps of the loop before it has written, and some until that is told."""

    async def apply(self, changes: Sequence[Change], author: Author, at: datetime) -> int:
        for _ in range(3):
            await asyncio.sleep(0)
        version = await super().apply(changes, author, at)
        for _ in range(3):
            await asyncio.sleep(0)
        return version


async def cancelled_after(steps: int, work: Awaitable[Any]) -> None:
    """What becomes of it after so many steps of the loop is its own affair."""

    async def wait() -> None:
        await work

    async with asyncio.TaskGroup() as tasks:
        task = tasks.create_task(wait())
        for _ in range(steps):
            await asyncio.sleep(0)
        task.cancel()


def more(view: ClusterView) -> ClusterView:
    return view.with_deployment(deployment(spec(name="more"), uid="u9")).with_replica(replica("r9"))


async def taken_over(keeper: Keeper) -> None:
    keeper.listen_to_all()
    await keeper.take_over()


async def hearing(keeper: Keeper) -> None:
    own = keeper.stamp
    await keeper.hear("node n1", replace(own, revision=own.revision + 9))


CHANGES: dict[str, Callable[[Keeper], Awaitable[Any]]] = {
    "desire": lambda keeper: keeper.desire(more, ADMIN),
    "decide": lambda keeper: keeper.decide(lambda view: (more(view), "test")),
    "observe": lambda keeper: keeper.observe(more, "test"),
    "take_over": taken_over,
    "hear": hearing,
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("steps", MOMENTS)
async def test_a_cancelled_change_is_whole_or_not_at_all(change: str, steps: int) -> None:
    store = SlowStore()
    keeper = Keeper(Cluster(), store, ManualClock())
    await keeper.restore()
    await keeper.observe(lambda view: view.with_node(node()), "test")
    if change == "take_over":
        await contradict(keeper)
    await cancelled_after(steps, CHANGES[change](keeper))
    await keeper.observe(lambda view: view, "whoever comes next waits for its end")
    restored = Keeper(Cluster(), store, ManualClock())
    await restored.restore()
    seen, stored = keeper.cluster.view(), restored.cluster.view()
    assert (seen.deployments, seen.replicas) == (stored.deployments, stored.replicas)
    assert (seen.held, keeper.stamp) == (stored.held, restored.stamp)


@pytest.mark.parametrize("steps", MOMENTS)
async def test_a_token_whose_revoking_is_cancelled_is_revoked_or_not(steps: int) -> None:
    store = SlowStore()
    keeper = Keeper(Cluster(), store, ManualClock())
    await keeper.restore()
    tokens = TokenManager(keeper, ManualClock())
    await tokens.begin(new_secret(), new=True)
    made, secret = await tokens.create("ci", Role.VIEWER, "test")
    await cancelled_after(steps, tokens.revoke(made.id, "test"))
    await tokens.create("next", Role.VIEWER, "test")
    restored = TokenManager(keeper, ManualClock())
    await restored.begin(new_secret(), new=False)
    assert bool(tokens.holder(secret)) == bool(restored.holder(secret))


async def test_nobody_comes_between_a_cancelled_change_and_its_end() -> None:
    whole, done = Whole(), list[str]()
    goes_on = asyncio.Event()

    async def first() -> None:
        await goes_on.wait()
        done.append("first")

    async def second() -> None:
        done.append("second")

    await cancelled_after(3, whole.do(first))
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(whole.do(second))
        await asyncio.sleep(0)
        goes_on.set()
    assert done == ["first", "second"]


async def test_work_that_fails_lets_the_next_one_in() -> None:
    whole = Whole()

    async def fails() -> None:
        raise ValueError("no")

    async def works() -> int:
        return 1

    with pytest.raises(ValueError, match="no"):
        await whole.do(fails)
    assert await whole.do(works) == 1
