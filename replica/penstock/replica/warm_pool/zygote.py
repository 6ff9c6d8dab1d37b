"""The zygote: imports an engine's code once, then forks members, reaps what has ended, and tells.

It has one thread, and holds no end of a member's socket. It ends when its agent does.
"""

from __future__ import annotations

import argparse
import gc
import mmap
import os
import select
import signal
import socket
import sys
import time
import traceback
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, NoReturn

from penstock.replica import parentage
from penstock.replica.endings import ExitCode
from penstock.replica.logs import tell_end
from penstock.replica.warm_pool import process
from penstock.replica.warm_pool.channel import Channel
from penstock.replica.warm_pool.imports import ENGINES, Gone, Imported, imported, variables

_ROOM: Final = "--room"
_FAILED: Final = 1
_CLAIMED: Final = 1


def main(argv: Sequence[str] | None = None) -> NoReturn:
    """Runs a zygote. Ends the process without the interpreter's own end, in which libraries tell of
    what they leaked."""
    code = _run(argv)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _run(argv: Sequence[str] | None) -> int:
    told = _parser().parse_args(argv)
    if not told.room:
        process.begin_again([_ROOM], variables(told.engine))
    process.end_on_signals()
    parentage.die_with(os.getppid())  # one that was stopped reads no end of its socket
    process.write_command_line(sys.orig_argv[:-2])
    os.set_inheritable(told.fd, False)
    agent = Channel(socket.socket(fileno=told.fd))
    try:
        _live(told.engine, agent)
    except (Gone, BrokenPipeError, ConnectionResetError):
        return ExitCode.STOPPED
    except Exception as error:
        traceback.print_exc()
        reason = " ".join(str(error).split()) or type(error).__name__
        tell_end(reason)
        agent.tell({"failed": reason})
        return _FAILED
    return ExitCode.STOPPED


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m penstock.replica.warm_pool",
        description="Forks processes that have imported an engine, for a node agent.",
        allow_abbrev=False,
    )
    parser.add_argument("--engine", required=True, choices=ENGINES)
    parser.add_argument("--fd", required=True, type=int, help="a SOCK_SEQPACKET socket")
    parser.add_argument(_ROOM, default="", help=argparse.SUPPRESS)
    return parser


def _live(engine: str, agent: Channel) -> None:
    began = time.monotonic()
    gc.disable()  # modules are no garbage, and a collection in a fork copies what all share
    result = imported(engine, lambda: not _left(agent))
    gc.collect()
    gc.freeze()
    ms = round((time.monotonic() - began) * 1000)
    agent.tell({"imported": {"ms": ms, "vllm": result.vllm, "device": result.device}})
    Zygote(result, agent).serve()


def _left(agent: Channel) -> bool:
    """Whether the other end is closed; what was said and not read does not count."""
    poll = select.poll()
    poll.register(agent, 0)
    return bool(poll.poll(0))


@dataclass(slots=True)
class _Child:
    pid: int
    slot: int  # where in the shared memory it says that it was claimed
    ending: bool = field(default=False)


class Zygote:
    """Forks and reaps. Of one thread, as it has to be."""

    def __init__(self, imported: Imported, agent: Channel) -> None:
        self._imported = imported
        self._agent = agent
        self._children: dict[int, _Child] = {}  # by a descriptor that tells of the end
        self._slots = mmap.mmap(-1, mmap.PAGESIZE)  # shared with the forks
        self._poll = select.poll()
        self._poll.register(agent, select.POLLIN)

    def serve(self) -> None:
        """Until the agent is gone."""
        while True:
            for descriptor, _ in self._poll.poll():
                if descriptor != self._agent.fileno():
                    self._reap(descriptor)
                elif (heard := self._agent.hear()) is None:
                    return
                else:
                    self._have_waiting(heard.fields["members"])

    def _have_waiting(self, wanted: int) -> None:
        waiting = [one for one in self._children.values() if self._waits(one)]
        for one in waiting[wanted:]:
            one.ending = True
            os.kill(one.pid, signal.SIGKILL)
        for _ in range(wanted - len(waiting)):
            self._fork()

    def _waits(self, child: _Child) -> bool:
        return not child.ending and self._slots[child.slot] != _CLAIMED

    def _fork(self) -> None:
        taken = {one.slot for one in self._children.values()}
        slot = next(slot for slot in range(len(self._slots)) if slot not in taken)
        self._slots[slot] = 0
        agents, members = Channel.pair()
        sys.stdout.flush()
        sys.stderr.flush()
        zygote, pid = os.getpid(), os.fork()
        if pid == 0:
            self._be_member(members, slot, zygote)
        os.setpgid(pid, pid)  # whoever of the two comes first
        members.close()
        descriptor = os.pidfd_open(pid)
        self._children[descriptor] = _Child(pid, slot)
        self._poll.register(descriptor, select.POLLIN)
        self._agent.tell({"member": pid}, [agents.fileno()])
        agents.close()

    def _be_member(self, agent: Channel, slot: int, zygote: int) -> None:
        from penstock.replica.warm_pool.member import Member

        def claimed() -> None:
            self._slots[slot] = _CLAIMED

        Member(self._imported, agent, claimed).live(zygote)

    def _reap(self, descriptor: int) -> None:
        child = self._children.pop(descriptor)
        self._poll.unregister(descriptor)
        os.close(descriptor)
        _, status = os.waitpid(child.pid, 0)
        self._agent.tell({"ended": child.pid, "status": os.waitstatus_to_exitcode(status)})
