"""What is asked of logs, and what is told."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from typing import Final, NamedTuple, Protocol

GATEWAY: Final = "gateway"
PROGRAM: Final = "program"
REPLICA: Final = "replica"


class LogQuestion(NamedTuple):
    """Which lines."""

    since_us: int = 0  # microseconds since 1970; 0: as far back as there are logs
    ids: tuple[str, ...] = ()  # that name a request by one of these; none: all
    tail: int = 0  # of those that were written before, the last ones
    follow: bool = False  # and those that are written from now on
    of: str = ""  # of the process of this name, or of a deployment's; empty: of all


class Author(NamedTuple):
    """Which process wrote it."""

    kind: str  # "head", "gateway", "node", "replica", "program", "comparer", "warm-pool"
    name: str = ""  # among those of its kind on its machine; empty: it is the only one


class Source(NamedTuple):
    """A log."""

    author: Author
    path: Path
    written: bool = True  # a process may write to it


class LoggedLine(NamedTuple):
    """One line, as all processes' look."""

    author: Author
    time_us: int  # microseconds since 1970
    level: str  # "debug", "info", "warning", "error"
    text: str  # a JSON object, with the time and the level in it


class LoggedPart(NamedTuple):
    """Some lines, in the order of their times; none: nothing was written."""

    lines: Sequence[LoggedLine] = ()
    note: str = ""  # of who reads, on what comes or does not
    caught_up: bool = False  # what was written before is told
    gateways: Sequence[str] = ()  # with the last of that: those whose logs lie here


class MachineLogs(Protocol):
    """The logs of one machine."""

    def read(self, asked: LogQuestion) -> AsyncGenerator[LoggedPart, None]:
        """Lines, and something each five seconds. Raises `Unavailable`, at any moment."""
