"""How a local gateway is run: its command line, its log, and what tells it from others.

A gateway that is replaced and the one that takes its place run side by side for a while, so each
has an id of its own: "gw-1", then "gw-1.2", "gw-1.3".
"""

from __future__ import annotations

import logging
import shutil
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Protocol

from penstock.control.data_dir import logs_path
from penstock.control.settings import GatewayTls

log = logging.getLogger(__name__)

SHARE_PORT = "--share-port"


class LivenessProbe(Protocol):
    """Asks a gateway whether it lives."""

    async def alive(self, address: str, *, tls: bool = False) -> bool:
        """Whether /livez at this address answered 200 in time, over TLS where that is spoken."""


@dataclass(frozen=True, slots=True)
class GatewayCommand:
    """How a local gateway is run."""

    name: str  # the id of the first one
    binary: Path
    listen: str  # host:port of the OpenAI API
    control: str  # host:port of the head's Routes service
    data_dir: Path
    metrics: str = ""  # host:port of metrics and status pages; empty: none
    tls: GatewayTls | None = None  # of `listen`
    threads: int | None = None
    log_level: str = "info"
    flags: tuple[str, ...] = ()  # further ones, handed on as they are
    generation: int = 1  # grows with each replacement

    @property
    def id(self) -> str:
        """What it calls itself."""
        return self.name if self.generation == 1 else f"{self.name}.{self.generation}"

    def argv(self) -> list[str]:
        """The command line."""
        argv = [str(self.binary), "--listen", self.listen, "--control", self.control]
        argv += [*gateway_mark(self.data_dir), self.id, "--log-level", self.log_level]
        if self.metrics:
            argv += ["--metrics", self.metrics]
        if self.tls is not None:
            argv += ["--tls-cert", str(self.tls.cert), "--tls-key", str(self.tls.key)]
        if self.threads is not None:
            argv += ["--threads", str(self.threads)]
        return [*argv, *self.flags]

    @property
    def log_path(self) -> Path:
        """Where its output goes."""
        return logs_path(self.data_dir) / f"gateway-{self.id}.log"

    @property
    def snapshot_path(self) -> Path:
        """Where it keeps the routes that it starts with."""
        return self.data_dir / f"snapshot-{self.id}.pb"

    def successor(self) -> GatewayCommand:
        """The command of the gateway that takes this one's place."""
        return replace(self, generation=self.generation + 1)

    def of_generation(self, generation: int) -> GatewayCommand:
        """The same gateway as another generation of it."""
        return replace(self, generation=generation)

    def runs(self, argv: Sequence[str]) -> bool:
        """Whether this is the command line of a process that was started as this command says.

        Without the program's name: one that is a script appears under its interpreter's.
        """
        wanted = self.argv()[1:]
        return [word for word in argv if word != SHARE_PORT][-len(wanted) :] == wanted


def hand_routes(old: GatewayCommand, new: GatewayCommand) -> None:
    """Lets the new one start with the routes of the old one: it answers from its first moment."""
    try:
        shutil.copyfile(old.snapshot_path, new.snapshot_path)
    except OSError as error:
        log.warning("gateway starts without routes: %s", error, extra={"gateway": new.id})


def forget_routes(command: GatewayCommand) -> None:
    """Of a gateway that is gone for good."""
    with suppress(OSError):
        command.snapshot_path.unlink(missing_ok=True)


def gateway_mark(data_dir: Path) -> list[str]:
    """Words in a row that only the local gateways of this data directory have, followed by the
    id: how they are found again."""
    return ["--data-dir", str(data_dir), "--id"]


def generation_of(argv: Sequence[str], name: str) -> int:
    """The generation that a gateway's command line tells; 1 where it tells none."""
    following = [word for before, word in pairwise(argv) if before == "--id"]
    _, dot, number = following[-1].rpartition(f"{name}.") if following else ("", "", "")
    return int(number) if dot and number.isdigit() else 1
