"""The router programs of a node: a process for each deployment that has one.

What is to run the head says with each heartbeat; without a head what runs goes on. Another text is
another process: the one before is ended once the next one answers. All end with the agent, since
gateways do without them.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from penstock.control.node_agent.program_life import ProgramLife, ProgramNeeds
from penstock.control.supervision.supervisor import supervise
from penstock.v1 import nodes_pb2

_NAME: Final = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]*")
Programs = dict[str, nodes_pb2.RouterProgram]


class RouterPrograms:
    """Keeps running what the head asked for last; one task runs `run`."""

    def __init__(self, needs: ProgramNeeds) -> None:
        self._needs = needs
        self._wanted: Programs = {}
        self._told = asyncio.Event()
        self._lives: dict[str, ProgramLife] = {}  # by deployment, the newest
        self._all: set[ProgramLife] = set()  # with those that end

    def learn(self, reply: nodes_pb2.HeartbeatReply) -> None:
        """Takes what the head answers."""
        wanted = {each.deployment_uid: each for each in reply.programs if _is_name(each)}
        if wanted != self._wanted:
            self._wanted = wanted
            self._told.set()

    def statuses(self) -> Sequence[nodes_pb2.ProgramStatus]:
        """How each fares."""
        return [
            nodes_pb2.ProgramStatus(
                deployment_uid=uid,
                digest=life.program.digest,
                running=life.running,
                restarts=life.restarts,
                last_error=life.trouble,
            )
            for uid, life in sorted(self._lives.items())
        ]

    async def run(self) -> None:
        """Until cancelled, which ends all."""
        _emptied(self._needs.home.announced)
        try:
            async with asyncio.TaskGroup() as tasks:
                while True:
                    self._told.clear()
                    self._adopt(tasks)
                    await self._told.wait()
        finally:
            for life in self._all:
                life.kill()

    def _adopt(self, tasks: asyncio.TaskGroup) -> None:
        """Starts what is new, and ends what nobody wants."""
        for uid in self._lives.keys() - self._wanted.keys():
            self._lives.pop(uid).end()
        for uid, program in self._wanted.items():
            life = self._lives.get(uid)
            if life is None or not _same_process(life.program, program):
                if life is not None and not life.running:
                    life.end()
                self._begin(tasks, program)
            elif life.program != program:
                life.program = program
                self._needs.changed()
        self._needs.texts.keep([each.digest for each in self._wanted.values()])

    def _begin(self, tasks: asyncio.TaskGroup, program: nodes_pb2.RouterProgram) -> None:
        life = ProgramLife(program, self._needs, self._end_older)
        self._lives[program.deployment_uid] = life
        self._all.add(life)
        tasks.create_task(self._live(life))

    async def _live(self, life: ProgramLife) -> None:
        await supervise(life)
        self._all.discard(life)
        self._needs.changed()

    def _end_older(self, life: ProgramLife) -> None:
        """It answers: those before it are to go."""
        uid = life.program.deployment_uid
        if self._lives.get(uid) is life:
            for other in self._all - {life}:
                if other.program.deployment_uid == uid:
                    other.end()


def _same_process(one: nodes_pb2.RouterProgram, other: nodes_pb2.RouterProgram) -> bool:
    """Whether a process that runs the one runs the other: all that ship are in one."""
    ships = bool(one.name and other.name) and not (one.module or other.module)
    return ships or (one.digest, one.module) == (other.digest, other.module)


def _is_name(program: nodes_pb2.RouterProgram) -> bool:
    """Whether its names can be those of files."""
    names = (program.deployment_uid, program.digest, program.deployment)
    return all(_NAME.fullmatch(each) for each in names)


def _emptied(folder: Path) -> None:
    """Makes the folder, without what an agent before has left there. Where that cannot be, each
    program's process says so."""
    with suppress(OSError):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for file in (*folder.glob("*.json"), *folder.glob("*.new")):
            file.unlink(missing_ok=True)
