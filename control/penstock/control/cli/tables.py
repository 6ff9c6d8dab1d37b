"""Tables for people: ids and states stay whole, what is long stands below in lines of its own."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.console import Console
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
}
INDENT = 2  # columns
# Never broken, as ids and states are not: they are there to be copied.
WHOLE = frozenset({"address"})


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Table:
    """The first column names the row; the second is its state, and has its colour."""
    made = Table(title=title, title_justify="left", title_style="bold")
    for position, column in enumerate(columns):
        made.add_column(column, no_wrap=position < 2 or column in WHOLE, overflow="fold")
    for row in rows:
        cells = [Text(cell) for cell in row]
        cells[1].stylize(COLOURS.get(row[1], ""))
        made.add_row(*cells)
    return made


def note(about: str, words: str) -> Padding:
    """What is to be said of one row: broken between words, at the terminal's width."""
    return Padding(Text.assemble((about, "bold"), ": ", words), (0, 0, 0, INDENT))


def notes(pairs: Iterable[tuple[str, str]]) -> list[Padding]:
    """Notes for those rows of which there is something to say."""
    return [note(about, words) for about, words in pairs if words]


def show(*parts: Table | Padding) -> None:
    """Prints them to the terminal, or wherever stdout goes."""
    console = Console()
    for part in parts:
        console.print(part)
