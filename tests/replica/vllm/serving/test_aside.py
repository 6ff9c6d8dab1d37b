"""Of each tenant one large call is made ready at a time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace

import pytest

from penstock.replica.values import Call
from penstock.replica.vllm.serving.aside import Aside
from penstock.replica.vllm.serving.tap import CallTap


class _Desk:
    """Calls that are made ready by the same `Aside`, and which of them are."""

    def __init__(self) -> None:
        self._aside = Aside(0)
        self.ready: list[str] = []

    @asynccontextmanager
    async def asking(
        self, name: str, tenant: str, body: bytes = b"{}"
    ) -> AsyncIterator[tuple[CallTap, asyncio.Event]]:
        """A call for as long as the block lasts, and what ends it where the engine never has it."""
        tap, end = (
            CallTap(Call(name, "/v1/completions", body, "m", tenant=tenant)),
            asyncio.Event(),
        )

        async def work() -> None:
            async with self._aside.made_ready(tap):
                self.ready.append(name)
                await end.wait()

        async with asyncio.TaskGroup() as group:
            task = group.create_task(work())
            await _settle()
            yield tap, end
            task.cancel()


async def _settle() -> None:
    """Lets everybody go on who can."""
    for _ in range(10):
        await asyncio.sleep(0)


@pytest.fixture
def desk() -> _Desk:
    return _Desk()


async def test_a_tenants_second_call_waits_until_the_engine_has_its_first(desk: _Desk) -> None:
    async with desk.asking("first", "a") as (tap, _), desk.asking("second", "a"):
        async with desk.asking("other", "b"):
            assert desk.ready == ["first", "other"]
        tap.entered(SimpleNamespace())
        tap.entered(SimpleNamespace())
        await _settle()
        assert desk.ready == ["first", "other", "second"]
        async with desk.asking("third", "a"):
            assert desk.ready == ["first", "other", "second"]


async def test_a_call_that_the_engine_never_has_lets_the_next_one_in_at_its_end(
    desk: _Desk,
) -> None:
    async with desk.asking("refused", "a") as (_, end), desk.asking("next", "a"):
        assert desk.ready == ["refused"]
        end.set()
        await _settle()
        assert desk.ready == ["refused", "next"]


async def test_a_call_that_leaves_while_it_waits_or_is_made_ready_keeps_nobody_out(
    desk: _Desk,
) -> None:
    async with desk.asking("first", "a"), desk.asking("leaves early", "a"):
        assert desk.ready == ["first"]
    async with desk.asking("next", "a"):
        assert desk.ready == ["first", "next"]


async def test_pictures_that_have_to_be_fetched_keep_others_out_but_for_a_moment(
    desk: _Desk,
) -> None:
    picture = b'{"type": "image_url", "image_url": {"url": "https://slow.example/"}}'
    async with desk.asking("picture", "a", picture), desk.asking("next", "a"):
        assert desk.ready == ["picture"]
        async with asyncio.timeout(5):
            while desk.ready != ["picture", "next"]:
                await asyncio.sleep(0.01)
