"""Whoever asks for a change may be cancelled at any moment: store and view stay the same."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest

from penstock.control.managers.cluster_store import ClusterStore
from penstock.control.managers.tenancy.tokens import TokenManager, new_secret
from penstock.control.managers.whole import Whole
from penstock.control.managers.write import Write
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


async def taken_over(cluster: ClusterStore) -> None:
    cluster.listen_to_all()
    await cluster.take_over()


async def hearing(cluster: ClusterStore) -> None:
    own = cluster.stamp
    await cluster.observe_stamp("node n1", replace(own, revision=own.revision + 9))


CHANGES: dict[str, Callable[[ClusterStore], Awaitable[Any]]] = {
    "apply": lambda cluster: cluster.apply(more, ADMIN),
    "apply_plan": lambda cluster: cluster.apply_plan(lambda view: (more(view), "test")),
    "observe": lambda cluster: cluster.observe(more, "test"),
    "take_over": taken_over,
    "observe_stamp": hearing,
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("steps", MOMENTS)
async def test_a_cancelled_change_is_whole_or_not_at_all(change: str, steps: int) -> None:
    store = SlowStore()
    cluster = ClusterStore(store, ManualClock())
    await cluster.restore()
    await cluster.observe(lambda view: view.with_node(node()), "test")
    if change == "take_over":
        await contradict(cluster)
    await cancelled_after(steps, CHANGES[change](cluster))
    await cluster.observe(lambda view: view, "whoever comes next waits for its end")
    restored = ClusterStore(store, ManualClock())
    await restored.restore()
    seen, stored = cluster.view(), restored.view()
    assert (seen.deployments, seen.replicas) == (stored.deployments, stored.replicas)
    assert (seen.held, cluster.stamp) == (stored.held, restored.stamp)


@pytest.mark.parametrize("steps", MOMENTS)
async def test_a_token_whose_revoking_is_cancelled_is_revoked_or_not(steps: int) -> None:
    store = SlowStore()
    cluster = ClusterStore(store, ManualClock())
    await cluster.restore()
    tokens = TokenManager(cluster, ManualClock())
    await tokens.begin(new_secret(), new=True)
    made, secret = await tokens.create("ci", Role.VIEWER, Write("test"))
    await cancelled_after(steps, tokens.revoke(made.id, Write("test")))
    await tokens.create("next", Role.VIEWER, Write("test"))
    restored = TokenManager(cluster, ManualClock())
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
