"""What clients see when a process is killed, stopped for a while or told to end.

`test_kill_matrix.py` holds a running system to it; docs/operate/restarting.md has its table.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby

from tests.e2e.flow import BROKEN, REFUSED

STOPPED = 15  # seconds between SIGSTOP and SIGCONT
DEAD, LOADING = "503 engine_dead, retry true", "503 model_loading, retry true"
_STOPPED = "503 engine_stopped, retry true"
_LOADS = "until another has loaded"
_BUSY = "503 overloaded, retry true"


@dataclass(frozen=True)
class Cell:
    """One process and one signal; what is not allowed here must not be seen."""

    who: str
    signal: str
    streams: tuple[str, ...] = ()  # how streams that run in the process may end
    requests: tuple[str, ...] = ()  # how else requests may end
    within: int = 0  # seconds after the signal until the last one fails
    until: str = ""  # the same for people, where the machine says how long that is
    waits: int = 0  # seconds that an answer may take longer than it would
    for_all: bool = False  # clients of another gateway see the same
    may_be_replaced: bool = False  # stopped for so long, it is taken for dead

    @property
    def name(self) -> str:
        """As tests are picked by it."""
        return f"{self.who.replace(' ', '_')}-{self.signal}"

    def __str__(self) -> str:
        parts = []
        if self.streams:
            parts.append(f"its streams: {_named(self.streams)}")
        if self.requests:
            how_long = self.until or f"for {self.within} s at most"
            parts.append(f"{how_long} requests are {_named(self.requests)}")
        if self.waits:
            parts.append(f"what it has in hand takes up to {self.waits} s longer")
        if self.may_be_replaced:
            return f"{parts[-1]}, or is given up: {'; '.join(parts[:-1])}"
        return "; ".join(parts) or "nothing"


def _named(ends: tuple[str, ...]) -> str:
    return ", ".join(f"`{end.split(',')[0]}`" for end in ends)


CELLS = (
    Cell("head", "KILL"),
    Cell("head", "STOP"),
    Cell("head", "TERM"),
    Cell("node agent", "KILL"),
    Cell("node agent", "STOP"),
    Cell("node agent", "TERM"),
    Cell("gateway", "KILL", streams=(BROKEN,), requests=(BROKEN, REFUSED), within=2),
    Cell("gateway", "STOP", waits=STOPPED + 1),
    Cell("gateway", "TERM"),
    Cell("replica of two", "KILL", for_all=True),
    Cell("replica of two", "STOP", waits=STOPPED + 1, for_all=True),
    Cell("replica of two", "TERM"),
    Cell(
        "engine core of the only replica", "KILL", streams=("engine_dead in the stream",),
        requests=(DEAD, LOADING, _BUSY), within=300, until=_LOADS, for_all=True,
    ),
    Cell(
        "engine core of the only replica", "STOP", streams=("engine_dead in the stream",),
        requests=(DEAD, LOADING, _BUSY), within=300, until=_LOADS, waits=STOPPED + 1, for_all=True,
        may_be_replaced=True,  # it is given up after ten seconds without a step or CPU time
    ),
    Cell(
        "engine core of the only replica", "TERM",
        streams=("engine_stopped in the stream", "engine_dead in the stream"),
        requests=(_STOPPED, DEAD, LOADING, _BUSY), within=300, until=_LOADS, waits=10, for_all=True,
    ),
)  # fmt: skip


def table() -> str:
    """The matrix as the docs show it."""
    return "\n".join(_lines())


def _lines() -> Iterator[str]:
    signals = [cell.signal for cell in CELLS[:3]]
    headings = [f"SIG{s}, {STOPPED} s" if s == "STOP" else f"SIG{s}" for s in signals]
    yield "| | " + " | ".join(headings) + " |"
    yield "|---" * (len(signals) + 1) + "|"
    for who, cells in groupby(CELLS, lambda cell: cell.who):
        row = list(cells)
        assert [cell.signal for cell in row] == signals
        yield f"| {who} | " + " | ".join(map(str, row)) + " |"
        if who == "gateway":
            assert not any(cell.for_all for cell in row)
            yield "| gateway, for clients of another |" + " nothing |" * len(signals)
