"""Which logs lie in a folder, and whose they are."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from penstock.control.log_files import segments
from penstock.control.machine_logs.values import GATEWAY, PROGRAM, REPLICA, Author, Source

# The first line of each process of a replica; the agent writes it.
REPLICA_BEGINS: Final = '{"process": "node", "message": "the replica is started", '
GATEWAY_LOG: Final = "gateway-"  # and its id
PROGRAM_LOG: Final = "program-"  # and its deployment
HEAD_LOG: Final = "head"
NODE_LOG: Final = "node-agent"
COMPARER_LOG: Final = "comparer"
WARM_POOL_LOG: Final = "warm-pool"
_LOG: Final = re.compile(r"(.+)\.log(?:\.\d{8}T\d{6}\.\d{3}Z)?")


class LogFolder:
    """A folder of logs. Blocks: for a thread."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._replicas: set[str] = set()  # whose logs were seen to begin as a replica's

    def names(self) -> Iterator[str]:
        """Of all logs, those of which only segments are left included."""
        try:
            found = [_LOG.fullmatch(path.name) for path in self._folder.iterdir()]
        except OSError:
            return
        yield from sorted({match[1] for match in found if match})

    def path(self, name: str) -> Path:
        """Of a log."""
        return self._folder / f"{name}.log"

    def is_replicas(self, name: str) -> bool:
        """Whether a replica's agent began it."""
        if name not in self._replicas and self._begins_so(name):
            self._replicas.add(name)
        return name in self._replicas

    def _begins_so(self, name: str) -> bool:
        path, mark = self.path(name), REPLICA_BEGINS.encode()
        for each in (path, *segments(path)):
            try:
                with each.open("rb") as file:
                    if file.read(len(mark)) == mark:
                        return True
            except OSError:  # thrown away meanwhile
                continue
        return False


def head_sources(folder: LogFolder) -> Iterator[Source]:
    """What a head has started, and itself."""
    for name in folder.names():
        if name in (HEAD_LOG, COMPARER_LOG):
            yield Source(Author(name), folder.path(name))
        elif _is_gateways(folder, name):
            yield _gateway(folder, name)


def node_sources(
    folder: LogFolder, node: str, is_here: Callable[[str], bool], *, beside_head: bool
) -> Iterator[Source]:
    """What a node agent has started, itself, and gateways of its machine that log there.

    `is_here`: whether the agent has a replica of that id now. `beside_head`: a head uses the folder
    too, and tells of its own.
    """
    for name in folder.names():
        path = folder.path(name)
        if is_here(name) or folder.is_replicas(name):
            yield Source(Author(REPLICA, name), path, written=is_here(name))
        elif name == NODE_LOG:
            yield Source(Author("node", node), path)
        elif name == WARM_POOL_LOG:
            yield Source(Author(WARM_POOL_LOG), path)
        elif name.startswith(PROGRAM_LOG):
            yield Source(Author(PROGRAM, name.removeprefix(PROGRAM_LOG)), path)
        elif not beside_head and _is_gateways(folder, name):
            yield _gateway(folder, name)


def _is_gateways(folder: LogFolder, name: str) -> bool:
    return name.startswith(GATEWAY_LOG) and not folder.is_replicas(name)


def _gateway(folder: LogFolder, name: str) -> Source:
    return Source(Author(GATEWAY, name.removeprefix(GATEWAY_LOG)), folder.path(name))
