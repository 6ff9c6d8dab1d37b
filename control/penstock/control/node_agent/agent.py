"""The node agent's side of its talk with the head: register, then heartbeats, for ever.

The head may be away for as long as it likes: everything keeps running, and the agent keeps asking.
Each message carries every replica whole, so nothing depends on what the head remembers.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol

from penstock.control.declared.messages import message_of
from penstock.control.errors import NotAdmitted, TokenRefused, Unavailable
from penstock.control.node_agent.allegiance import Allegiance
from penstock.v1 import nodes_pb2

log = logging.getLogger(__name__)

FIRST_RETRY = timedelta(milliseconds=100)
LONGEST_RETRY = timedelta(seconds=2)
GOODBYE_LIMIT = timedelta(seconds=0.5)


class HeadLink(Protocol):
    """Calls to the head. Both raise `Unavailable` when it cannot be reached, `TokenRefused` when it
    does not take this agent's token, and `NotAdmitted` when it does not let this agent in."""

    async def register(self, request: nodes_pb2.RegisterNodeRequest) -> nodes_pb2.RegisterNodeReply:
        """Makes this node known."""

    async def heartbeat(self, request: nodes_pb2.HeartbeatRequest) -> nodes_pb2.HeartbeatReply:
        """Tells how it is."""


class Replicas(Protocol):
    """What runs here."""

    def statuses(self) -> list[nodes_pb2.ReplicaStatus]:
        """Every replica, whole."""


@dataclass(frozen=True, slots=True)
class NodeIdentity:
    """Who this agent is, as the head is told it."""

    node_id: str
    agent_address: str  # host:port of the NodeAgent service
    host: str  # where replicas are reached
    pid: int
    instance: str  # as in nodes.proto, `NodeInfo`
    allows_model_code: bool = False  # as in nodes.proto, `NodeInfo`
    zone: str = ""
    metrics_address: str = ""  # host:port as it was told; empty: none


class Agent:
    """Reports to the head until cancelled; one task runs `report`."""

    def __init__(
        self,
        identity: NodeIdentity,
        head: HeadLink,
        replicas: Replicas,
        resources: Callable[[], nodes_pb2.NodeResources],
        allegiance: Allegiance,
        changed: asyncio.Event,
        token_refused: Callable[[], str],
        warm_pool: Callable[[], nodes_pb2.WarmPool] = nodes_pb2.WarmPool,
        listeners: Sequence[Callable[[nodes_pb2.HeartbeatReply], None]] = (),
        programs: Callable[[], Sequence[nodes_pb2.ProgramStatus]] = tuple,
    ) -> None:
        self._identity = identity
        self._head = head
        self._replicas = replicas
        self._resources = resources
        self._allegiance = allegiance
        self._changed = changed  # set by whoever changes a replica: the head hears of it at once
        self._token_refused = token_refused  # what is done about it, in one line for the log
        self._warm_pool = warm_pool
        self._programs = programs
        self._listeners = listeners  # each is told what this node's head answers
        self._told = ""  # what was logged last of a head that could not be talked to

    async def report(self) -> None:
        """Registers and sends heartbeats; begins anew whenever the head is lost or forgets."""
        retry = FIRST_RETRY
        while True:
            try:
                interval = await self._register()
                retry, self._told = FIRST_RETRY, ""
                await self._beat(interval)
            except Unavailable as error:
                self._tell(error)
                if isinstance(error, NotAdmitted):
                    retry = LONGEST_RETRY
                await asyncio.sleep(retry.total_seconds())
                retry = min(LONGEST_RETRY, retry * 2)

    def _tell(self, error: Unavailable) -> None:
        """Says once for each time that the head is away why, and what to do about its refusal."""
        what = "the head does not answer, asking again"
        if isinstance(error, TokenRefused):
            what = f"the head refuses this node: {self._token_refused()}"
        if isinstance(error, NotAdmitted):
            what = f"the head does not let this agent in, asking again: {error}"
        if what != self._told:
            self._told = what
            log.warning("%s: %s", what, error)

    async def _register(self) -> timedelta:
        who = self._identity
        reply = await self._head.register(
            nodes_pb2.RegisterNodeRequest(
                node=message_of(nodes_pb2.NodeInfo, who, resources=self._resources()),
                replicas=self._replicas.statuses(),
                stamp=self._allegiance.message,
            )
        )
        self._allegiance.learn(reply.stamp)
        log.info("registered with the head as node %s", who.node_id)
        return timedelta(milliseconds=reply.heartbeat_ms or 1000)

    async def _beat(self, interval: timedelta) -> None:
        """Heartbeats, on time and at each change, until the head says that it does not know us."""
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(interval.total_seconds()):
                    await self._changed.wait()
            self._changed.clear()
            reply = await self._heartbeat(nodes_pb2.NODE_INTENT_SERVING)
            is_ours = self._allegiance.learn(reply.stamp)
            if reply.unknown:
                log.info("the head does not know this node: registering again")
                return
            for listener in self._listeners if is_ours else ():
                listener(reply)

    async def say_goodbye(self, intent: nodes_pb2.NodeIntent) -> None:
        """Tells the head what is left and what becomes of it, so that it need not wait for
        silence. It may be away."""
        with suppress(Unavailable, TimeoutError):
            async with asyncio.timeout(GOODBYE_LIMIT.total_seconds()):
                await self._heartbeat(intent)

    async def _heartbeat(self, intent: nodes_pb2.NodeIntent) -> nodes_pb2.HeartbeatReply:
        return await self._head.heartbeat(
            nodes_pb2.HeartbeatRequest(
                node_id=self._identity.node_id,
                resources=self._resources(),
                replicas=self._replicas.statuses(),
                stamp=self._allegiance.message,
                intent=intent,
                instance=self._identity.instance,
                warm_pool=self._warm_pool(),
                programs=self._programs(),
            )
        )
