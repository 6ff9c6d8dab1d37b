"""Replicas are told of tokens of role router again and again, by their agent."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from datetime import timedelta

import pytest

from penstock.control.errors import Unavailable
from penstock.control.node_agent.router_tokens import TOLD_EVERY, VALID_FOR, RouterTokens
from penstock.control.state.fleet.replica import ReplicaAddress
from penstock.v1 import nodes_pb2

ONE, TWO = ReplicaAddress("r1", "h:1"), ReplicaAddress("r2", "h:2")


class Replicas:
    """Takes tokens, but for replicas that do not answer."""

    def __init__(self) -> None:
        self.there = [ONE]
        self.silent: set[ReplicaAddress] = set()
        self.told: asyncio.Queue[tuple[ReplicaAddress, tuple[bytes, ...]]] = asyncio.Queue()

    async def keep_router_tokens(
        self,
        replica: ReplicaAddress,
        sha256s: Sequence[bytes],
        valid: timedelta,
        *,
        within: timedelta,
    ) -> None:
        if replica in self.silent:
            raise Unavailable("no answer")
        assert valid == VALID_FOR
        self.told.put_nowait((replica, tuple(sha256s)))

    async def until(self, wanted: tuple[ReplicaAddress, tuple[bytes, ...]]) -> None:
        """Until this was told."""
        async with asyncio.timeout(10):
            while await self.told.get() != wanted:
                pass


@pytest.fixture
def replicas() -> Replicas:
    return Replicas()


@pytest.fixture
async def tokens(replicas: Replicas) -> AsyncIterator[RouterTokens]:
    """Those that run, and tell every few milliseconds."""
    made = RouterTokens(replicas, lambda: replicas.there, timedelta(milliseconds=5))
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(made.run())
        yield made
        running.cancel()


def reply(*digests: bytes) -> nodes_pb2.HeartbeatReply:
    return nodes_pb2.HeartbeatReply(router_tokens=digests)


async def test_what_the_head_said_last_is_told_again_and_again(
    tokens: RouterTokens, replicas: Replicas
) -> None:
    tokens.learn(reply(b"a", b"b"))
    for _ in range(3):  # the head is away
        await replicas.until((ONE, (b"a", b"b")))
    tokens.learn(reply(b"b"))
    await replicas.until((ONE, (b"b",)))
    tokens.learn(reply())
    await replicas.until((ONE, ()))


async def test_a_replica_that_does_not_answer_keeps_nobody_waiting(
    tokens: RouterTokens, replicas: Replicas
) -> None:
    replicas.there, replicas.silent = [ONE, TWO], {ONE}
    tokens.learn(reply(b"a"))
    await replicas.until((TWO, (b"a",)))
    replicas.silent = set()
    await replicas.until((ONE, (b"a",)))


async def test_before_a_head_was_heard_nothing_is_told(replicas: Replicas) -> None:
    made = RouterTokens(replicas, lambda: [ONE], timedelta(0))
    with suppress(TimeoutError):
        async with asyncio.timeout(0.05):
            await made.run()
    assert replicas.told.empty()


def test_a_replica_that_is_told_nothing_forgets_within_five_seconds_of_a_revocation() -> None:
    heartbeat = timedelta(seconds=1)
    assert heartbeat + VALID_FOR < timedelta(seconds=5)
    assert TOLD_EVERY * 2 < VALID_FOR, "one that was missed is made up for"
