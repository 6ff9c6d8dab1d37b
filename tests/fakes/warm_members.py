"""A zygote and members that are objects of the test."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from datetime import timedelta
from itertools import count
from pathlib import Path

from penstock.control.errors import LaunchFailed
from penstock.control.node_agent.warm_dependencies import (
    Ended,
    Forked,
    Gone,
    Imported,
    StartOrder,
    Told,
)
from tests.fakes.control_launcher import FakeProcess

ORDER = StartOrder("vllm", ["python", "-m", "penstock.replica"], {"TOKEN": "t"}, Path("r.log"))


class ScriptedMember:
    """Becomes what it is asked to, unless it `does` otherwise."""

    def __init__(self, pid: int, does: str = "") -> None:
        self.process = FakeProcess(pid, ["zygote"])
        self.does = does
        self.became: StartOrder | None = None

    async def fits(self, argv: Sequence[str], *, within: timedelta) -> str:
        await self._answers("fits")
        return "it is too long" if self.does == "refuses" else ""

    async def become(self, order: StartOrder, *, within: timedelta) -> None:
        await self._answers("become")
        self.became = order

    async def _answers(self, what: str) -> None:
        await asyncio.sleep(0)
        if self.does == f"fails {what}":
            raise LaunchFailed("a member of the warm pool ended")


class ScriptedZygotes:
    """Starts them; each forks at once what is wanted, unless it `forks` nothing."""

    def __init__(self) -> None:
        self.started = 0
        self.asked = 0  # how often, for members
        self.alive = False
        self.refusal = ""
        self.forks = True
        self.does: list[str] = []  # what the next members do
        self.members: list[ScriptedMember] = []
        self.observe: Callable[[Told], None] = lambda told: None
        self._pids = count(500)

    def start(self, observe: Callable[[Told], None]) -> ScriptedZygotes:
        if self.refusal:
            raise LaunchFailed(self.refusal)
        self.started += 1
        self.alive, self.observe = True, observe
        return self

    def imported(self) -> None:
        self.observe(Imported(9000))

    def dies(self) -> None:
        self._end()
        self.observe(Gone("it ended"))

    def member_ends(self) -> None:
        self.observe(Ended(self.members[-1].process.pid))

    def want(self, members: int) -> None:
        self.asked += 1
        waiting = [each for each in self.members if each.became is None and each.process.alive()]
        if not self.forks:
            return
        for _ in range(members - len(waiting)):
            member = ScriptedMember(next(self._pids), self.does.pop(0) if self.does else "")
            self.members.append(member)
            self.observe(Forked(member))

    def retire(self) -> None:
        self._end()

    async def end(self) -> None:
        self._end()

    def _end(self) -> None:
        self.alive = False
        for each in self.members:
            if each.became is None:
                each.process.kill()
