"""The box between vLLM's serving layer and the caller: bounded, in order, ends once."""

from __future__ import annotations

import asyncio

from penstock.replica.engine import Failed, TokenGroup
from penstock.replica.vllm.outbox import CAPACITY, Outbox

_FAILURE = Failed(503, "server_error", "engine_dead", "gone")


async def test_what_was_put_comes_out_joined_and_in_order() -> None:
    box = Outbox()
    await box.put(b"a", [TokenGroup(0, (1,))])
    await box.put(b"b", [TokenGroup(0, (2,))])
    batch = await box.take()
    assert (batch.body, batch.events, batch.ended) == (b"ab", 2, False)
    assert batch.groups == (TokenGroup(0, (1,)), TokenGroup(0, (2,)))


async def test_a_writer_waits_while_the_box_is_full_and_goes_on_when_it_is_emptied() -> None:
    box = Outbox()
    for _ in range(CAPACITY):
        await box.put(b"x", [])
    async with asyncio.TaskGroup() as tasks:
        writer = tasks.create_task(box.put(b"y", []))
        await asyncio.sleep(0)
        assert not writer.done()
        assert (await box.take()).events == CAPACITY
        await writer
    assert (await box.take()).body == b"y"


async def test_a_failure_comes_behind_what_was_already_said() -> None:
    box = Outbox()
    await box.put(b"a", [])
    box.fail(_FAILURE)
    batch = await box.take()
    assert (batch.body, batch.ended, batch.failure) == (b"a", True, _FAILURE)


async def test_only_the_first_end_counts_and_nothing_comes_after_it() -> None:
    box = Outbox()
    box.fail(_FAILURE)
    box.end()
    await box.put(b"late", [])
    batch = await box.take()
    assert (batch.body, batch.failure) == (b"", _FAILURE)


async def test_the_end_frees_a_writer_that_waits() -> None:
    box = Outbox()
    for _ in range(CAPACITY):
        await box.put(b"x", [])
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(box.put(b"y", []))
        await asyncio.sleep(0)
        box.end()
    assert (await box.take()).events == CAPACITY
