"""One router program's process on a node: started, watched, started again, ended."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

from penstock.control import log_files
from penstock.control.errors import LaunchFailed, SecretUnusable
from penstock.control.node_agent.program_health import (
    Fault,
    ProgramBounds,
    Vitals,
    beat_of,
    unwritable,
)
from penstock.control.node_agent.program_texts import ProgramTexts
from penstock.control.router.logs import SAYS
from penstock.control.router.program import printable
from penstock.control.secrets_files import write_secret
from penstock.control.supervision.clock import Clock
from penstock.control.supervision.process import Launcher, Process
from penstock.control.supervision.restart_policy import OWN_PROCESSES, Ending, StartAgain, after_end
from penstock.v1 import nodes_pb2

log = logging.getLogger(__name__)

LOOK_EVERY: Final = timedelta(milliseconds=20)  # for what a process that starts announces
VITALS_EVERY: Final = timedelta(seconds=1)
START_LIMIT: Final = timedelta(seconds=30)
END_LIMIT: Final = timedelta(seconds=12)  # longer than a program lets its streams end
OTHER_TEXT: Final = "this node's Penstock ships another text of it: update it"
_MOST_ANNOUNCED: Final = 64 << 10  # bytes
_LAST_LINES: Final = 200  # of its log, that may say why it ended


@dataclass(frozen=True, slots=True)
class ProgramHome:
    """Where a node's programs run, and what of the node they may be."""

    announced: Path  # the folder where gateways look
    logs: Path
    modules: tuple[str, ...] = ()  # that may be imported


@dataclass(frozen=True, slots=True)
class ProgramNeeds:
    """What every program's process is kept with."""

    home: ProgramHome
    texts: ProgramTexts
    launcher: Launcher
    clock: Clock
    changed: Callable[[], None]  # what is told of it has changed
    cpu: Callable[[int], float]  # seconds that the process of that pid has taken
    bounds: ProgramBounds = field(default_factory=ProgramBounds)


class ProgramLife:
    """A `Life` of one program for one deployment, until `end`."""

    def __init__(
        self,
        program: nodes_pb2.RouterProgram,
        needs: ProgramNeeds,
        answers: Callable[[ProgramLife], None],
    ) -> None:
        self.program = program
        self.restarts = 0
        self._last_error = ""  # why its process ended; empty: it did not
        self._digests: Sequence[str] = ()  # that its process runs
        self._needs = needs
        self._answers = answers  # called when it can first be asked, after each start
        self._process: Process | None = None
        self._ending = asyncio.Event()
        self._failures = 0  # in a row
        self._began = 0.0
        self._fault: Fault | None = None  # that its process was ended for

    @property
    def running(self) -> bool:
        """Whether gateways can ask it."""
        return self.program.digest in self._digests

    @property
    def trouble(self) -> str:
        """In one line; empty: none."""
        return OTHER_TEXT if self._digests and not self.running else self._last_error

    @property
    def file(self) -> Path:
        """Where gateways look how it is asked."""
        return self._needs.home.announced / f"{self.program.deployment_uid}.json"

    @property
    def draft(self) -> Path:
        """Where its process says it, which can open no file but that one."""
        return self.file.with_suffix(f".{id(self):x}.new")

    @property
    def log_path(self) -> Path:
        """Where its output goes."""
        return self._needs.home.logs / f"program-{self.program.deployment}.log"

    def end(self) -> None:
        """It is not to run any more; its process takes no streams, and ends with those it has."""
        self._ending.set()
        if self._process is not None:
            self._process.terminate()
            _withdraw(self.file, self._process.pid)

    def kill(self) -> None:
        """It ends now."""
        self._ending.set()
        if self._process is not None:
            self._process.kill_group()
            _withdraw(self.file, self._process.pid)

    # ---- the life that `supervise` lives through

    async def start(self) -> Process:
        """Starts the process. Raises `LaunchFailed`."""
        argv = await self._command()
        _remove(self.draft)
        log_files.begin(self.log_path)
        self._began, self._fault = self._needs.clock.monotonic(), None
        process = await self._needs.launcher.start(argv, log_path=self.log_path)
        if self._ending.is_set():  # meanwhile
            process.terminate()
        self._process = process
        return process

    async def accompany(self, process: Process) -> int | None:
        """Stays with it to its end, which is forced where it does not come."""
        async with asyncio.TaskGroup() as tasks:
            watching = tasks.create_task(self._watch(process))
            exit_code = await process.wait()
            watching.cancel()
        process.kill_group()  # what it may have started
        _withdraw(self.file, process.pid)
        _remove(self.draft)
        return exit_code

    async def ended(self, exit_code: int | None, refusal: LaunchFailed | None) -> timedelta | None:
        """Says why, and how long to wait."""
        self._process, self._digests = None, ()
        if self._ending.is_set():
            return None
        self._last_error = printable(str(refusal or self._why_ended(exit_code)))
        self.restarts += refusal is None
        self._needs.changed()
        log.warning(
            "a router program ended: %s",
            self._last_error,
            extra={"deployment": self.program.deployment, "exit_code": exit_code},
        )
        ran = timedelta(seconds=self._needs.clock.monotonic() - self._began)
        decision = after_end(OWN_PROCESSES, self._failures, Ending(None, ran))
        assert isinstance(decision, StartAgain)  # no exit code of a replica
        self._failures = decision.failures
        return max(decision.after, self._fault.pause if self._fault else decision.after)

    async def pause(self, duration: timedelta) -> bool:
        """Waits before the next start."""
        async with asyncio.TaskGroup() as tasks:
            slept = tasks.create_task(self._needs.clock.sleep(duration))
            told = tasks.create_task(self._ending.wait())
            await asyncio.wait((slept, told), return_when=asyncio.FIRST_COMPLETED)
            slept.cancel()
            told.cancel()
        return not self._ending.is_set()

    # ---- what it does meanwhile

    async def _command(self) -> Sequence[str]:
        words = [sys.executable, "-P", "-m", "penstock.control.router"]
        words += ["--announce", str(self.draft), "--with-parent", str(os.getpid())]
        program = self.program
        if program.module:
            if program.module not in self._needs.home.modules:
                raise LaunchFailed(
                    f"module {program.module} is none of this node's --program-modules"
                )
            return [*words, "--module", program.module]
        if program.name:
            return words
        text = await self._needs.texts.file(program.digest)
        return [*words, "--text", str(text), "--digest", program.digest]

    async def _watch(self, process: Process) -> None:
        """Notes when it can be asked, and kills it where it does not start, or does not end."""
        clock, until = self._needs.clock, self._began + START_LIMIT.total_seconds()
        while not (said := _announced(self.draft, process.pid)) and clock.monotonic() < until:
            await clock.sleep(LOOK_EVERY)
        if not said or not _published(self.file, said):
            process.kill_group()
            return
        self._digests, self._last_error = _digests_in(said), ""
        self._needs.changed()
        self._answers(self)
        await self._watch_over(process)
        if self._ending.is_set():
            await clock.sleep(END_LIMIT)
        process.kill_group()

    async def _watch_over(self, process: Process) -> None:
        """Until it is to end, or does not do: it may be stopped, or take the machine."""
        needs = self._needs
        vitals = Vitals(needs.bounds, needs.clock.monotonic(), needs.cpu(process.pid))
        while not self._fault and await self.pause(VITALS_EVERY):
            beat, cpu = beat_of(self.draft), needs.cpu(process.pid)
            self._fault = vitals.fault(needs.clock.monotonic(), beat, cpu)

    def _why_ended(self, exit_code: int | None) -> str:
        if self._fault:
            return self._fault.why
        if said := last_words(log_files.tail(self.log_path, _LAST_LINES)):
            return said
        mute = unwritable(self._needs.home.logs, self._needs.home.announced)
        return f"exit code {exit_code}" + (f": {mute}" if mute else "")


def last_words(lines: Sequence[str]) -> str:
    """Why a process ended, by what it said last; empty: it said nothing."""
    for at, line in reversed(list(enumerate(lines))):
        if line.startswith(SAYS):
            return line.removeprefix(SAYS)
        if line.startswith("Timeout ("):
            where = next((each for each in lines[at:] if each.startswith('File "<')), "")
            return f"it did not yield for two seconds: {where}"
    return _message(lines[-1]) if lines else ""


def _message(line: str) -> str:
    """What one of our lines says; any other as it is."""
    with suppress(ValueError, AttributeError, RecursionError):
        return str(json.loads(line).get("message", line))
    return line


def _announced(file: Path, pid: int) -> Mapping[str, Any]:
    wrong = (OSError, ValueError, AttributeError, RecursionError)
    with suppress(*wrong), file.open("rb") as told:
        found: Mapping[str, Any] = json.loads(told.read(_MOST_ANNOUNCED))
        return found if found.get("pid") == pid else {}
    return {}


def _digests_in(said: Mapping[str, Any]) -> Sequence[str]:
    told = said.get("digests")
    return [each for each in told if isinstance(each, str)] if isinstance(told, list) else ()


def _published(file: Path, said: Mapping[str, Any]) -> bool:
    """Writes it where gateways look. False: it cannot be written."""
    try:
        write_secret(file, json.dumps(said))
    except SecretUnusable as error:
        log.warning("where a router program is asked cannot be told: %s", error)
        return False
    return True


def _withdraw(file: Path, pid: int) -> None:
    """Removes what that process announced; what another one has since stays."""
    if _announced(file, pid):
        _remove(file)


def _remove(file: Path) -> None:
    with suppress(OSError):
        file.unlink(missing_ok=True)
