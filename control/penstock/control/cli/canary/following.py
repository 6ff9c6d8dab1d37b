"""Follows a canary to its end: both arms anew each second at a terminal, else a line for each
change."""

from __future__ import annotations

import asyncio
import io
import sys
from collections.abc import Callable
from datetime import timedelta

import typer
from rich.console import Console
from rich.live import Live
from rich.text import Text

from penstock.control.admin.canary.models import CanaryStatusModel
from penstock.control.cli.admin_calls import Head, patiently
from penstock.control.cli.asking import say_json
from penstock.control.cli.canary.side_by_side import headline, parts_of
from penstock.control.cli.outcome import finish
from penstock.control.cli.tables import show
from penstock.control.outside.admin_client import AdminClient
from penstock.control.state.canary.canary import CanaryState

EVERY = timedelta(seconds=1)


def follow(head: Head, name: str) -> None:
    """Returns once it is promoted; ends the command with 1 where it ended otherwise."""
    with _shown() as shown:
        last = head.ask(lambda admin: _followed(admin, name, shown))
    if head.as_json:
        say_json(last)
    else:
        show(*parts_of(last))
    if last.state != CanaryState.PROMOTED:
        finish(1)


async def _followed(
    admin: AdminClient, name: str, shown: Callable[[CanaryStatusModel], None]
) -> CanaryStatusModel:
    while True:
        shown(found := await patiently(lambda: admin.canary(name), EVERY))
        if found.ended_at:
            return found
        await asyncio.sleep(EVERY.total_seconds())


class _shown:
    """Shows each state on stderr; into a pipe only those that differ from the one before."""

    def __init__(self) -> None:
        self._last = ""
        self._live: Live | None = None

    def __enter__(self) -> Callable[[CanaryStatusModel], None]:
        if sys.stderr.isatty():
            self._live = Live(console=Console(stderr=True), transient=True)
            self._live.start()
        return self._show

    def __exit__(self, *_: object) -> None:
        if self._live:
            self._live.stop()

    def _show(self, found: CanaryStatusModel) -> None:
        if self._live:
            self._live.update(_drawn(found, self._live.console.width), refresh=True)
            return
        said = f"canary {found.name}: {headline(found)}"
        if said != self._last:
            typer.echo(said, err=True)
        self._last = said


def _drawn(found: CanaryStatusModel, width: int) -> Text:
    paper = Console(file=io.StringIO(), width=width, force_terminal=True)
    show(*parts_of(found), console=paper)
    assert isinstance(paper.file, io.StringIO)
    return Text.from_ansi(paper.file.getvalue())
