"""The warm pool of a node: processes that have imported an engine and wait to be a replica.

`run` keeps it filled as `warm_policy.py` decides, `claim` makes a replica of a member. Whatever is
wrong with the pool, a replica is started: cold, and it is told why.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from typing import NamedTuple

from penstock.control.errors import LaunchFailed
from penstock.control.node_agent.warm_dependencies import (
    Ended,
    Forked,
    Gone,
    Imported,
    Member,
    NodeReplicas,
    PoolDependencies,
    StartOrder,
    Told,
    Zygote,
)
from penstock.control.node_agent.warm_policy import (
    LEAST_MEMORY,
    Planned,
    PoolState,
    Stage,
    Step,
    Surroundings,
    plan,
    wanted_members,
)
from penstock.control.supervision.process import Process
from penstock.v1 import nodes_pb2

log = logging.getLogger(__name__)


class Cold(NamedTuple):
    """The pool gives no process."""

    reason: str  # for a person; empty: there is no pool for it


class WarmPool:
    """Everything but `installed_code` happens on the agent's loop."""

    def __init__(self, needs: PoolDependencies, asked: int | None, build: str) -> None:
        """`asked`, `build`: as for `wanted_members`."""
        self._needs = needs
        self.patience = needs.patience
        wanted, self._reason = wanted_members(asked, build)
        self._state = PoolState(wanted, least_memory=LEAST_MEMORY if asked is None else 0)
        self._zygote: Zygote | None = None
        self._members: deque[Member] = deque()
        self._changed = asyncio.Event()  # `run` is to look
        self._told = asyncio.Event()  # a claim is to look
        self._one_claims = asyncio.Lock()
        self._code = ""  # that the zygote has imported
        self._quiet_from = 0.0
        self._filling_since: float | None = None  # None: the zygote's first member was there
        self._claims = self._cold_starts = self._filled_in_ms = 0

    def status(self) -> nodes_pb2.WarmPool:
        """The pool as the head is told of it."""
        return nodes_pb2.WarmPool(
            target=self._state.wanted,
            waiting=len(self._members),
            reason=self._reason,
            claims=self._claims,
            cold_starts=self._cold_starts,
            filled_in_ms=self._filled_in_ms,
        )

    def look(self) -> None:
        """Something has changed on the node."""
        self._changed.set()

    # ---- filling

    async def run(self, replicas: NodeReplicas) -> None:
        """Keeps the pool filled until cancelled; then nothing of it is left but retired zygotes,
        which end with the replicas of theirs, or with the agent."""
        if not self._state.wanted:
            return
        self._quiet_for(self.patience.orders_first)
        waited = False
        try:
            while True:
                self._changed.clear()
                around = self._around(replicas)
                if waited and not around.start_waits:
                    self._quiet_for(self.patience.answers_first)
                    around = self._around(replicas)
                waited = around.start_waits
                planned = plan(self._state, around, self._now(), self.patience)
                self._reason = planned.reason
                await self._carry_out(planned)
        finally:
            await self._without_zygote()

    def _quiet_for(self, duration: timedelta) -> None:
        self._quiet_from = max(self._quiet_from, self._now() + duration.total_seconds())

    def _around(self, replicas: NodeReplicas) -> Surroundings:
        engines = replicas.engines()
        return Surroundings(
            len(self._members),
            replicas.start_waits(self._needs.clock.now() + self.patience.due_soon),
            self._quiet_from,
            bool(engines) and self._needs.engine not in engines,
            self._needs.memory_available(),
        )

    async def _carry_out(self, planned: Planned) -> None:
        match planned.step:
            case Step.WAIT:
                await self._wait(planned.look_again)
            case Step.START:
                await self._start()
            case Step.FORK:
                self._fork()
            case Step.GIVE_UP:
                log.warning("the warm pool is given up: %s", planned.reason)
                await self._without_zygote()
                self._lost(planned.reason)

    async def _wait(self, until: float | None) -> None:
        """Until something has changed, or that time has come."""
        async with asyncio.TaskGroup() as tasks:
            if until is not None:
                sleeper = tasks.create_task(self._look_at(until))
            await self._changed.wait()
            if until is not None:
                sleeper.cancel()

    async def _look_at(self, moment: float) -> None:
        await self._needs.clock.sleep(timedelta(seconds=max(0.0, moment - self._now())))
        self._changed.set()

    async def _start(self) -> None:
        self._code = await asyncio.to_thread(self._needs.installed_code)
        self._filling_since = self._now()
        try:
            self._zygote = self._needs.start_zygote(self._observe)
        except LaunchFailed as error:
            self._lost(str(error))
            return
        self._state = self._state.moved(Stage.IMPORTING, self._now())

    def _fork(self) -> None:
        assert self._zygote is not None  # in this stage there is one
        self._state = self._state.moved(Stage.FORKING, self._now())
        self._zygote.want(self._state.wanted)
        self._changed.set()  # a claim may have asked: it is to be done in time

    def _ask_again(self) -> None:
        """What a zygote was asked for it counted by what waited then, as far as it knew."""
        if self._state.stage is Stage.FORKING and self._zygote is not None:
            self._zygote.want(self._state.wanted)

    def _observe(self, told: Told) -> None:
        """What the zygote tells."""
        match told:
            case Imported(ms):
                if self._state.stage is Stage.IMPORTING:
                    self._state = self._state.moved(Stage.IDLE, self._now())
                log.info("the warm pool's zygote has imported its engine in %d ms", ms)
            case Forked(member):
                self._forked(member)
            case Ended(pid):
                left = (each for each in self._members if each.process.pid != pid)
                self._members = deque(left)
                self._ask_again()
            case Gone(why):
                log.warning("the warm pool's zygote is gone: %s", why)
                self._zygote = None
                self._members.clear()
                self._lost(why)
        self._told.set()
        self._changed.set()

    def _forked(self, member: Member) -> None:
        self._members.append(member)
        if self._state.stage is Stage.FORKING:
            self._state = self._state.moved(Stage.IDLE, self._now())
        if self._filling_since is not None:
            self._filled_in_ms = int((self._now() - self._filling_since) * 1000)
            self._filling_since = None

    def _lost(self, why: str) -> None:
        self._state = self._state.lost(self._now(), why, self.patience)

    async def _without_zygote(self) -> None:
        zygote, self._zygote = self._zygote, None
        self._members.clear()
        if zygote is not None:
            await zygote.end()

    def _retire(self) -> None:
        """Forks of it are wanted no more; it still tells what claimed ones exit with."""
        zygote, self._zygote = self._zygote, None
        self._members.clear()
        if zygote is not None:
            zygote.retire()

    # ---- claiming

    async def claim(self, order: StartOrder, runs: Callable[[Process], None]) -> Process | Cold:
        """A member that has become the process which is asked for; `runs` hears of it before it
        goes its way."""
        if not self._is_for(order.engine):
            return Cold("")
        async with self._one_claims:
            taken = await self._taken(order)
        if isinstance(taken, str):
            return self.went_cold(order.engine, taken)
        runs(taken.process)
        try:
            await taken.become(order, within=self.patience.answer_limit)
        except LaunchFailed as error:
            taken.process.kill_group()
            self.failed(str(error))
            return self.went_cold(order.engine, str(error))
        self._claims += 1
        self._ask_again()
        return taken.process

    def went_cold(self, engine: str, reason: str) -> Cold:
        """A replica is started cold."""
        if not self._is_for(engine):
            return Cold("")
        self._cold_starts += 1
        return Cold(reason)

    def worked(self) -> None:
        """A claimed process has become ready."""
        self._state = self._state.claim_worked()

    def failed(self, why: str) -> None:
        """A claimed process came to nothing."""
        log.warning("a claim of the warm pool came to nothing: %s", why)
        self._state = self._state.claim_failed(self._now(), why, self.patience)
        if self._state.stage is Stage.NONE:
            self._retire()
        self._changed.set()

    def _is_for(self, engine: str) -> bool:
        return bool(self._state.wanted) and engine == self._needs.engine

    async def _taken(self, order: StartOrder) -> Member | str:
        """A member that fits, out of the pool; or why there is none."""
        if self._state.stage in (Stage.NONE, Stage.IMPORTING):
            return self._why_empty()
        if await asyncio.to_thread(self._needs.installed_code) != self._code:
            self._state = self._state.replaced(self._now())
            self._retire()
            self._changed.set()
            return "what is installed is newer than the warm pool, which is replaced"
        if (member := await self._next_member()) is None:
            return "the warm pool had no member, and its zygote forked none in time"
        try:
            why = await member.fits(order.argv, within=self.patience.answer_limit)
        except LaunchFailed as error:
            member.process.kill_group()
            self.failed(str(error))
            return str(error)
        if why and self._zygote is not None:
            self._members.appendleft(member)
        return why or member

    def _why_empty(self) -> str:
        if self._state.stage is Stage.IMPORTING:
            return "the warm pool is not filled yet: its zygote imports the engine"
        if self._now() < self._state.rest_until:
            return f"the warm pool rests: {self._state.why}"
        return "the warm pool is not filled yet"

    async def _next_member(self) -> Member | None:
        """One that waits, or one that is forked for this claim: that takes a zygote no time."""
        with suppress(TimeoutError):
            async with asyncio.timeout(self.patience.answer_limit.total_seconds()):
                while not self._has_living() and self._zygote is not None:
                    if self._state.stage is Stage.IDLE:
                        self._fork()
                    self._told.clear()
                    await self._told.wait()
        return self._members.popleft() if self._members else None

    def _has_living(self) -> bool:
        """Whether a member waits: of one that was killed its zygote tells a moment later."""
        while self._members and not self._members[0].process.alive():
            self._members.popleft()
        return bool(self._members)

    def _now(self) -> float:
        return self._needs.clock.monotonic()
