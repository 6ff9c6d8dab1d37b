"""A node agent's side of a warm pool: starts a zygote, claims members of it."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import psutil

from penstock.replica.warm_pool.channel import Channel

WITHIN = 240.0  # seconds that anything may take that is waited for


def command(*words: str) -> list[str]:
    """The command line that a cold start of a replica would have."""
    return [sys.executable, "-m", "penstock.replica", *words]


def gone(pid: int) -> bool:
    """Whether a process runs no more."""
    with contextlib.suppress(psutil.NoSuchProcess):
        return bool(psutil.Process(pid).status() == psutil.STATUS_ZOMBIE)
    return True


def await_gone(pids: Iterable[int], within: float = 20) -> None:
    """Returns once none of them runs; fails if one runs on."""
    deadline = time.monotonic() + within
    while left := [pid for pid in pids if not gone(pid)]:
        assert time.monotonic() < deadline, f"still there after {within} s: {left}"
        time.sleep(0.01)


class Waiting:
    """A member that waits, from its agent's side."""

    def __init__(self, pid: int, channel: Channel) -> None:
        self.pid = pid
        self.channel = channel

    def why_cold(self, argv: Sequence[str]) -> str:
        """Why it cannot be this replica; empty: it can."""
        self.channel.tell({"fits": argv})
        heard = self.channel.hear()
        assert heard is not None
        reason: str = heard.fields.get("reason", "")
        assert heard.fields["fits"] is not bool(reason)
        return reason

    def become(self, argv: Sequence[str], log: Path, env: Mapping[str, str] | None = None) -> None:
        """Claims it; returns when it is on its way."""
        order = {
            "argv": argv,
            "env": {**os.environ, **(env or {})},
            "claimed_at_ms": time.monotonic_ns() // 1_000_000,
        }
        with log.open("ab") as file:
            self.channel.tell({"become": order}, [file.fileno()])
        heard = self.channel.hear()
        assert heard is not None
        assert heard.fields == {"become": True}
        assert self.channel.hear() is None
        self.channel.close()


class Pool:
    """A zygote and what it tells."""

    def __init__(self, engine: str, log: Path, env: Mapping[str, str] | None = None) -> None:
        here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        here.settimeout(WITHIN)
        self._end = here
        self.channel = Channel(here)
        self._members: list[Waiting] = []
        self._ended: dict[int, int] = {}  # exit codes
        with there, log.open("ab") as file:
            words = ["penstock.replica.warm_pool", "--engine", engine, "--fd", str(there.fileno())]
            self.process = subprocess.Popen(
                [sys.executable, "-m", *words],
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
                pass_fds=[there.fileno()],
                process_group=0,
                env={**os.environ, **(env or {})},
            )

    def told(self) -> Mapping[str, Any]:
        """What the zygote tells next."""
        heard = self.channel.hear()
        assert heard is not None, "the zygote has ended"
        assert not heard.descriptors
        if "ended" in heard.fields:
            self._ended[heard.fields["ended"]] = heard.fields["status"]
        return heard.fields

    def exit_code(self, pid: int, within: float) -> int | None:
        """Of a process of its own; None: it runs on after so many seconds."""
        self._end.settimeout(within)
        with contextlib.suppress(TimeoutError, BlockingIOError):
            while pid not in self._ended:
                self.told()
        self._end.settimeout(WITHIN)
        return self._ended.get(pid)

    def have(self, members: int) -> None:
        """So many are to wait."""
        self.channel.tell({"members": members})

    def member(self) -> Waiting:
        """The next that is told of."""
        heard = self.channel.hear()
        assert heard is not None, "the zygote has ended"
        end = socket.socket(fileno=heard.descriptors[0])
        end.settimeout(WITHIN)
        self._members.append(Waiting(heard.fields["member"], Channel(end)))
        return self._members[-1]

    def let_go(self, member: Waiting) -> None:
        """It was claimed by somebody who ends it."""
        self._members.remove(member)

    def empty(self) -> None:
        """Ends all members, claimed ones too, and hears of it."""
        for one in self._members:
            one.channel.close()
            if one.pid not in self._ended:
                with contextlib.suppress(ProcessLookupError):  # by itself, just now
                    os.kill(one.pid, signal.SIGKILL)
        while {one.pid for one in self._members} - self._ended.keys():
            self.told()
        self._members.clear()

    def close(self) -> None:
        """Leaves, and waits for the zygote's end. Claimed members live on."""
        for channel in (self.channel, *(one.channel for one in self._members)):
            channel.close()
        self.process.wait(WITHIN)


class Claimed:
    """A member that was claimed, as `subprocess` has the processes that it starts."""

    stdout = None

    def __init__(
        self, pool: Pool, argv: Sequence[str], log: Path, env: Mapping[str, str] | None = None
    ) -> None:
        pool.have(1)
        member = pool.member()
        assert not member.why_cold(argv)
        member.become(argv, log, env)
        pool.let_go(member)
        self.pid = member.pid
        self._pool = pool

    def poll(self) -> int | None:
        """Its exit code, if it has ended."""
        return self._pool.exit_code(self.pid, within=0)

    def wait(self, timeout: float = WITHIN) -> int:
        """Its exit code. Raises `subprocess.TimeoutExpired`."""
        code = self._pool.exit_code(self.pid, timeout)
        if code is None:
            raise subprocess.TimeoutExpired(str(self.pid), timeout)
        return code

    def send_signal(self, number: int) -> None:
        """Nothing, once it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        """SIGTERM."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """SIGKILL."""
        self.send_signal(signal.SIGKILL)


@contextlib.contextmanager
def running_pool(
    engine: str, log: Path, env: Mapping[str, str] | None = None
) -> Iterator[tuple[Pool, Mapping[str, Any]]]:
    """A pool that has imported its engine, and what it told of that."""
    pool = Pool(engine, log, env)
    try:
        yield pool, pool.told()["imported"]
    finally:
        pool.close()
