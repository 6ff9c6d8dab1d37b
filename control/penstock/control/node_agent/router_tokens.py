"""Tells replicas that serve MicroServing by REST which tokens of role `router` they take.

They forget what they were told after a while, so it is told again and again: a token that was
revoked is gone within five seconds, also from a replica that did not hear of it. While the head is
away, what it said last is told on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Final, Protocol

from penstock.control.errors import Unavailable
from penstock.control.state.fleet.replica import ReplicaAddress
from penstock.v1 import nodes_pb2

TOLD_EVERY: Final = timedelta(seconds=1)
VALID_FOR: Final = timedelta(seconds=3.5)
PATIENCE: Final = timedelta(seconds=1)  # with one replica


class TakesTokens(Protocol):
    """Talks to the MicroServing service of a replica."""

    async def keep_router_tokens(
        self,
        replica: ReplicaAddress,
        sha256s: Sequence[bytes],
        valid: timedelta,
        *,
        within: timedelta,
    ) -> None:
        """Says which tokens it takes from now on, and for how long. Raises `Unavailable`."""


class RouterTokens:
    """The last list that the head has told. `replicas`: those that are to know it."""

    def __init__(
        self,
        client: TakesTokens,
        replicas: Callable[[], Iterable[ReplicaAddress]],
        every: timedelta = TOLD_EVERY,
    ) -> None:
        self._client = client
        self._replicas = replicas
        self._every = every
        self._tokens: tuple[bytes, ...] | None = None  # None: no head was heard yet
        self._changed = asyncio.Event()

    def learn(self, reply: nodes_pb2.HeartbeatReply) -> None:
        """Takes what the head answers."""
        told = tuple(reply.router_tokens)
        if told != self._tokens:
            self._tokens = told
            self._changed.set()

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._every.total_seconds()):
                    await self._changed.wait()
            self._changed.clear()
            if self._tokens is not None:
                await asyncio.gather(*map(self._tell, self._replicas()))

    async def _tell(self, replica: ReplicaAddress) -> None:
        with suppress(Unavailable):  # it forgets what it was told
            await self._client.keep_router_tokens(
                replica, self._tokens or (), VALID_FOR, within=PATIENCE
            )
