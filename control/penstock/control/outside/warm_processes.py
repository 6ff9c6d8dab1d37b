"""A zygote and its members as real processes: one JSON object in each datagram, one socket each.

The zygote is our child, its members are not: what they exit with it tells, as long as it lives.
`penstock.replica.warm_pool` is the other side.
"""

from __future__ import annotations

import array
import asyncio
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from datetime import timedelta
from pathlib import Path
from typing import Any, BinaryIO

from penstock.control import log_files
from penstock.control.errors import LaunchFailed
from penstock.control.node_agent.warm_dependencies import (
    Ended,
    Forked,
    Gone,
    Imported,
    StartOrder,
    Told,
    zygote_environment,
)
from penstock.control.outside.processes import RunningProcess, adopted, start_time

ZYGOTE = (sys.executable, "-m", "penstock.replica.warm_pool")
LONGEST_MESSAGE = 64 * 1024
END_LIMIT = 2.0  # seconds that a killed zygote gets to be gone
# From the end of a member to what it exited with, which the zygote tells.
EXIT_CODE_LIMIT = 1.0

Message = dict[str, Any]


class _Channel:
    """Our end of a socket. `observe` gets each message, with the descriptors that came along, and
    None at its end."""

    def __init__(
        self, ours: socket.socket, observe: Callable[[Message | None, list[int]], None]
    ) -> None:
        ours.setblocking(False)
        self._socket = ours
        self._observe = observe
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(ours.fileno(), self._readable)

    def send(self, message: Message, *descriptors: int) -> None:
        """Raises `LaunchFailed` where it cannot be told now."""
        passed = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))]
        try:
            self._socket.sendmsg([json.dumps(message).encode()], passed if descriptors else [])
        except OSError as error:
            raise LaunchFailed(f"a process of the warm pool cannot be told: {error}") from error

    def close(self) -> None:
        """Nothing is heard from now on."""
        if self._socket.fileno() >= 0:
            self._loop.remove_reader(self._socket.fileno())
            self._socket.close()

    def _readable(self) -> None:
        try:
            data, descriptors, _, _ = socket.recv_fds(
                self._socket, LONGEST_MESSAGE, 4, socket.MSG_CMSG_CLOEXEC
            )
            message = json.loads(data) if data else None
        except (BlockingIOError, InterruptedError):
            return
        except (OSError, ValueError):  # it is broken, whatever comes next
            message, descriptors = None, []
        if not isinstance(message, dict):
            message = None
            self.close()
        self._observe(message, list(descriptors))


class WarmProcess(RunningProcess):
    """A member, or what it has become: no child of ours."""

    def __init__(self, pid: int, started_at: float, pidfd: int) -> None:
        super().__init__(pid, started_at, pidfd)
        self._told = asyncio.Event()

    def exited(self, exit_code: int | None) -> None:
        """Its zygote tells, or is gone."""
        if not self._told.is_set():
            self._exit_code = exit_code
            self._told.set()

    async def wait(self) -> int | None:
        """Returns at its end with the exit code, None where nobody tells that any more."""
        await super().wait()
        with suppress(TimeoutError):
            async with asyncio.timeout(EXIT_CODE_LIMIT):
                await self._told.wait()
        return self._exit_code


class WarmMember:
    """A member that waits."""

    def __init__(self, process: WarmProcess, ours: socket.socket) -> None:
        self.process = process
        self._channel = _Channel(ours, self._observe)
        self._answer: asyncio.Future[Message | None] | None = None
        self.claimed = False  # it has become something, or is about to

    async def fits(self, argv: Sequence[str], *, within: timedelta) -> str:
        """Why it cannot be a process of this command line; empty: it can. Raises `LaunchFailed`."""
        answer = await self._asked({"fits": list(argv)}, within)
        if answer.get("fits") is True:
            return ""
        return str(answer.get("reason") or "a member of the warm pool does not fit")

    async def become(self, order: StartOrder, *, within: timedelta) -> None:
        """Makes it that process. Raises `LaunchFailed`."""
        self.claimed, now = True, time.monotonic_ns() // 1_000_000
        env = {**os.environ, **order.env}
        become = {"argv": list(order.argv), "env": env, "claimed_at_ms": now}
        try:
            log = log_files.opened(order.log_path)
        except OSError as error:
            self._channel.close()
            raise LaunchFailed(f"a warm process gets no log: {error}") from error
        with log:
            answer = await self._asked({"become": become}, within, log.fileno())
        if answer.get("become") is not True:
            raise LaunchFailed("a member of the warm pool did not become what it was to be")

    def end(self) -> None:
        """Ends it, where it still waits."""
        if not self.claimed:
            self._channel.close()
            self.process.kill()

    async def _asked(self, question: Message, within: timedelta, *passed: int) -> Message:
        self._answer = asyncio.get_running_loop().create_future()
        self._channel.send(question, *passed)
        try:
            async with asyncio.timeout(within.total_seconds()):
                answer = await self._answer
        except TimeoutError:
            answer, words = None, f"did not answer within {within.total_seconds():g} s"
        else:
            words = "ended"
        if answer is None:
            self._channel.close()
            raise LaunchFailed(f"a member of the warm pool {words}")
        return answer

    def _observe(self, message: Message | None, descriptors: list[int]) -> None:
        _closed(descriptors)
        if self._answer is not None and not self._answer.done():
            self._answer.set_result(message)


class WarmZygote:
    """A zygote. `observe` is told what becomes of it, until `end`."""

    def __init__(
        self, process: RunningProcess, ours: socket.socket, observe: Callable[[Told], None]
    ) -> None:
        self._process = process
        self._observe = observe
        self._children: dict[int, WarmProcess] = {}  # that have not ended
        self._waiting: dict[int, WarmMember] = {}
        self._why = "it ended"
        self._retired = False
        self._channel = _Channel(ours, self._read)

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    def want(self, members: int) -> None:
        """So many are to wait."""
        with suppress(LaunchFailed):  # its end comes by itself, or it is given up
            self._channel.send({"members": members})

    def retire(self) -> None:
        """Ends those that wait, and itself after the last of those that were claimed; it tells
        nothing from now on."""
        self._observe = _nobody
        self._retired = True
        for pid, member in self._waiting.items():
            member.end()
            if not member.claimed:
                self._children.pop(pid).exited(None)
        self._waiting = {}
        self._end_if_unneeded()

    def _end_if_unneeded(self) -> None:
        if self._retired and not self._children:
            self._let_go()

    async def end(self) -> None:
        """Ends it and those that wait; it tells nothing from now on."""
        self._let_go()
        with suppress(TimeoutError):
            async with asyncio.timeout(END_LIMIT):
                await self._process.wait()

    def _let_go(self) -> None:
        self._channel.close()
        self._process.kill_group()
        for pid, child in self._children.items():
            child.exited(None)
            if pid in self._waiting:
                self._waiting[pid].end()
        self._children, self._waiting = {}, {}

    def _read(self, message: Message | None, descriptors: list[int]) -> None:
        try:
            told = self._understood(message or {}, descriptors)
        except (TypeError, ValueError, KeyError) as error:
            self._why, told = f"it said what cannot be: {error!r}", None
            message = None
        if message is None:
            self._let_go()
            told = Gone(self._why)
        if told is not None:
            self._observe(told)
        self._end_if_unneeded()

    def _understood(self, message: Message, descriptors: list[int]) -> Told | None:
        if "imported" in message:
            return Imported(int(message["imported"]["ms"]))
        if "member" in message:
            return self._forked(int(message["member"]), *descriptors)
        _closed(descriptors)
        if "failed" in message:
            self._why = str(message["failed"])
        if "ended" in message:
            pid = int(message["ended"])
            if child := self._children.pop(pid, None):
                child.exited(int(message["status"]))
            if member := self._waiting.pop(pid, None):
                member.end()
            return Ended(pid)
        return None

    def _forked(self, pid: int, descriptor: int) -> Forked | None:
        """None: it is gone already, or nobody wants it any more."""
        ours = socket.socket(fileno=descriptor)
        started_at = None if self._retired else start_time(pid)
        process = adopted(WarmProcess, pid, started_at) if started_at else None
        if process is None:
            ours.close()
            return None
        self._children[pid] = process
        member = self._waiting[pid] = WarmMember(process, ours)
        return Forked(member)


def start_zygote(
    argv: Sequence[str], log_path: Path, observe: Callable[[Told], None]
) -> WarmZygote:
    """Starts one, in a process group of its own. Raises `LaunchFailed`."""
    try:
        log_files.begin(log_path)
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with ExitStack() as undo:
            undo.callback(ours.close)
            with theirs, log_files.opened(log_path) as log:
                process = _spawned(argv, theirs, log)
            undo.pop_all()
    except OSError as error:  # of descriptors, of processes, of memory
        raise LaunchFailed(f"cannot start {argv[0]}: {error}") from error
    return WarmZygote(process, ours, observe)


def _spawned(argv: Sequence[str], theirs: socket.socket, log: BinaryIO) -> RunningProcess:
    child = subprocess.Popen(
        [*argv, "--fd", str(theirs.fileno())],
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=subprocess.STDOUT,
        process_group=0,
        env=zygote_environment(os.environ),
        pass_fds=[theirs.fileno()],
    )
    child.returncode = 0  # its pidfd tells of its end
    started_at = start_time(child.pid, even_dead=True)
    assert started_at is not None  # not reaped yet
    return RunningProcess(child.pid, started_at, os.pidfd_open(child.pid))


def _nobody(told: Told) -> None:
    """Listens to a zygote that is retired."""


def _closed(descriptors: Sequence[int]) -> None:
    """Nobody asked for them."""
    for each in descriptors:
        os.close(each)
