"""Lists for people: as a table where that fits, else row by row; as plain lines into a pipe.

Ids, states, addresses and numbers are never broken: they are there to be copied. A table may break
what reads on well on the next line; where even that does not fit, each row gets lines of its own.
A pipe has no width: there nothing is broken, and lines are columns for `awk` and `grep`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

COLOURS = {
    "ready": "green",
    "starting": "yellow",
    "pending": "yellow",
    "updating": "yellow",
    "draining": "yellow",
    "degraded": "yellow",
    "backoff": "red",
    "failed": "red",
    "lost": "red",
    "silent": "red",
    "unresponsive": "red",
    "foreign": "red",
    "quarantined": "red",
    "used up": "red",
    "running": "green",
    "promoted": "green",
    "held": "yellow",
    "paused": "yellow",
    "rolled_back": "red",
    "better": "green",
    "equal": "green",
    "undecided": "yellow",
    "worse": "red",
    "not asked": "red",
}
INDENT, GAP = 2, 2  # columns
# Columns, behind the first two, that may be broken; to no less than this.
SOFT = frozenset({"model", "models", "adapters", "name", "deployment", "path"})
SOFT_WIDTH = 14
NUMBERS = frozenset({"pid", "restarts", "in flight", "queued", "requests", "cores", "GPUs"})
NUMBERS |= {"ready ms"}
NUMBERS |= {"next waits", "waited", "shed"}
NUMBERS |= {"keys", "requests/min", "tokens/min", "tokens/day", "streams"}
NUMBERS |= {"asked", "decided", "moved tokens"}
NUMBERS |= {"rejected", "prompt", "cached", "completion"}
NUMBERS |= {"USD", "USD today", "of USD", "tokens today", "of tokens"}
GIB = 1 << 30
WIDE = 1 << 20  # a pipe's width


class TakesMemory(Protocol):
    """A replica."""

    memory_bytes: int
    device_memory_bytes: int


def memory_of(it: TakesMemory) -> str:
    """What a replica takes of its machine, and of accelerators where it has any."""
    found = ((it.memory_bytes, ""), (it.device_memory_bytes, " GPU"))
    return ", ".join(f"{count / GIB:.1f} GiB{where}" for count, where in found if count)


@dataclass(frozen=True, slots=True)
class Listing:
    """Rows under a title. The first column names the row; the second is its state, in colour."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True, slots=True)
class Note:
    """What is to be said of one row, or before all."""

    about: str
    words: str


Part = Listing | Note


def listing(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Listing:
    """A list of all these rows."""
    return Listing(title, columns, tuple(rows))


def on_one_line(text: str) -> str:
    """Foreign text with nothing in it that a terminal would obey."""
    return "".join(each if each.isprintable() or each == "\t" else "\ufffd" for each in text)


def day(moment: datetime | None) -> str:
    """A moment in a cell."""
    return moment.strftime("%Y-%m-%d %H:%M") if moment else ""


def notes(pairs: Iterable[tuple[str, str]]) -> list[Note]:
    """Notes for those rows of which there is something to say."""
    return [Note(about, words) for about, words in pairs if words]


def show(*parts: Part, console: Console | None = None) -> None:
    """Prints them to the terminal, or wherever stdout goes."""
    console = console or Console()
    for position, part in enumerate(parts):
        if position and isinstance(part, Listing):
            console.print()
        if console.is_terminal:
            console.print(_drawn(part, console.width))
        else:
            console.out(*_plain(part), sep="\n", highlight=False)


def _plain(part: Part) -> list[str]:
    if isinstance(part, Note):
        return [" " * INDENT + line for line in f"{part.about}: {part.words}".splitlines()]
    console = Console(width=WIDE, no_color=True, force_terminal=False)
    with console.capture() as captured:
        console.print(_drawn(part, WIDE))
    return [line.rstrip() for line in captured.get().splitlines()]


def _drawn(part: Part, width: int) -> RenderableType:
    if isinstance(part, Note):
        return Padding(Text.assemble((part.about, "bold"), ": ", part.words), (0, 0, 0, INDENT))
    if not part.rows:
        return Text.assemble((part.title, "bold"), ": none")
    return _table(part, width) if _least_width(part) <= width else _row_by_row(part)


def _table(part: Listing, width: int) -> Table:
    made = Table(
        title=part.title,
        title_justify="left",
        title_style="bold",
        header_style="dim",
        box=None,
        pad_edge=False,
        padding=(0, GAP, 0, 0),
    )
    for position, column in enumerate(part.columns):
        soft = _is_soft(position, column)
        made.add_column(
            column,
            no_wrap=not soft or width == WIDE,
            min_width=_least(part, position),
            overflow="fold",
            justify="right" if column in NUMBERS else "left",
        )
    for row in part.rows:
        made.add_row(*_cells(row))
    return made


def _row_by_row(part: Listing) -> Table:
    made = Table.grid()
    made.add_row(Text(part.title, style="bold"))
    for row in part.rows:
        name, state, *others = _cells(row)
        made.add_row(Padding(Text("  ").join([name, state]), (0, 0, 0, INDENT)))
        fields = Table.grid(padding=(0, GAP, 0, 0))
        fields.add_column(no_wrap=True, style="dim")
        fields.add_column(overflow="fold")
        for column, cell in zip(part.columns[2:], others, strict=True):
            if cell:
                fields.add_row(column, cell)
        made.add_row(Padding(fields, (0, 0, 0, 2 * INDENT)))
    return made


def _cells(row: Sequence[str]) -> list[Text]:
    cells = [Text(cell, overflow="fold") for cell in row]
    cells[1].stylize(COLOURS.get(row[1], ""))
    return cells


def _is_soft(position: int, column: str) -> bool:
    return position > 1 and column in SOFT


def _least_width(part: Listing) -> int:
    """What a table needs at least."""
    columns = range(len(part.columns))
    return sum(_least(part, position) for position in columns) + GAP * (len(columns) - 1)


def _least(part: Listing, position: int) -> int:
    column = part.columns[position]
    natural = max(len(text) for text in (column, *(row[position] for row in part.rows)))
    return min(natural, max(SOFT_WIDTH, len(column))) if _is_soft(position, column) else natural
