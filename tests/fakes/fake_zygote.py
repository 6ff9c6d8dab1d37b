"""A zygote of any command line: its members become it by exec. For tests of node agents.

Usage: python fake_zygote.py FOLDER --engine ENGINE --fd N

In FOLDER it writes down its pid and those of its members, as `zygote` and `members`; what lies
there makes it behave otherwise:

    importing       it imports for as long as the file is there
    cannot          it says that it cannot be a zygote, in the file's words
    refuses         members do not fit, in the file's words
    mute            members answer nothing
    lies            members answer what is no JSON
    dies            a claimed member ends with code 70, once: the file is then gone
    does_nothing    a claimed member does nothing, once: the file is then gone
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import select
import signal
import socket
import sys
import time
from pathlib import Path
from typing import Any, NoReturn

PR_SET_PDEATHSIG = 1


class Zygote:
    """Forks, reaps and tells."""

    def __init__(self, agent: socket.socket, folder: Path) -> None:
        self.agent = agent
        self.folder = folder
        self.children: dict[int, int] = {}  # pids by pidfd
        self.waiting: set[int] = set()  # by pidfd

    def serve(self) -> int:
        """Until the agent is gone."""
        self._write("zygote", os.getpid())
        while self._is("importing"):
            if select.select([self.agent], [], [], 0.02)[0]:
                return 0
        if self._is("cannot"):
            self._tell({"failed": (self.folder / "cannot").read_text()})
            return 1
        self._tell({"imported": {"ms": 1, "vllm": "", "device": "none"}})
        while True:
            ready, _, _ = select.select([self.agent.fileno(), *self.children], [], [])
            for each in ready:
                if each in self.children:
                    self._reap(each)
                elif not (data := self.agent.recv(1 << 16)):
                    return 0
                else:
                    self._have(json.loads(data)["members"])

    def _have(self, members: int) -> None:
        claimed = {
            fd for fd in self.waiting if (self.folder / f"claimed-{self.children[fd]}").exists()
        }
        self.waiting -= claimed
        for _ in range(members - len(self.waiting)):
            self._fork()

    def _fork(self) -> None:
        agents, members = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        zygote, pid = os.getpid(), os.fork()
        if pid == 0:
            try:
                self.agent.close()
                agents.close()
                Member(members, self.folder).live(zygote)
            finally:
                os._exit(74)
        pidfd = os.pidfd_open(pid)
        self.children[pidfd] = pid
        self.waiting.add(pidfd)
        self._write("members", pid)
        members.close()
        socket.send_fds(self.agent, [json.dumps({"member": pid}).encode()], [agents.fileno()])
        agents.close()

    def _reap(self, pidfd: int) -> None:
        pid = self.children.pop(pidfd)
        self.waiting.discard(pidfd)
        os.close(pidfd)
        _, status = os.waitpid(pid, 0)
        self._tell({"ended": pid, "status": os.waitstatus_to_exitcode(status)})

    def _tell(self, message: dict[str, Any]) -> None:
        self.agent.send(json.dumps(message).encode())

    def _is(self, name: str) -> bool:
        return (self.folder / name).exists()

    def _write(self, name: str, pid: int) -> None:
        with (self.folder / name).open("a") as file:
            file.write(f"{pid}\n")


class Member:
    """Waits, and becomes what it is told."""

    def __init__(self, agent: socket.socket, folder: Path) -> None:
        self.agent = agent
        self.folder = folder

    def live(self, zygote: int) -> NoReturn:
        """Never returns."""
        os.setpgid(0, 0)
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != zygote:
            os._exit(0)
        while True:
            data, descriptors, _, _ = socket.recv_fds(self.agent, 1 << 20, 1)
            if not data:
                os._exit(0)
            asked = json.loads(data)
            if "become" in asked:
                self._become(asked["become"], descriptors[0])
            self._fits()

    def _fits(self) -> None:
        if (self.folder / "mute").exists():
            return
        if (self.folder / "lies").exists():
            self.agent.send(b"yes")
            return
        refuses = self.folder / "refuses"
        why = {"fits": False, "reason": refuses.read_text()} if refuses.exists() else {"fits": True}
        self.agent.send(json.dumps(why).encode())

    def _become(self, order: dict[str, Any], log: int) -> NoReturn:
        (self.folder / f"claimed-{os.getpid()}").touch()
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, 0)
        os.dup2(log, 1)
        os.dup2(log, 2)
        os.close(log)
        self.agent.send(b'{"become": true}')
        self.agent.close()
        for name in ("dies", "does_nothing"):
            if (told := self.folder / name).exists():
                told.unlink()
                if name == "dies":
                    os.write(2, b"penstock-replica: error: it dies\n")
                    os._exit(70)
                time.sleep(300)
        os.execve(order["argv"][0], order["argv"], order["env"])


def main() -> int:
    """Runs it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--engine")
    parser.add_argument("--fd", type=int)
    told = parser.parse_args()
    os.set_inheritable(told.fd, False)
    return Zygote(socket.socket(fileno=told.fd), told.folder).serve()


if __name__ == "__main__":
    sys.exit(main())
