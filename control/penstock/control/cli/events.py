"""`penstock events`: what happened, and what happens."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Annotated

import typer

from penstock.control.admin.event_models import EventModel, GapModel
from penstock.control.cli.admin_calls import Head
from penstock.control.cli.asking import asks_head
from penstock.control.cli.since import HELP as SINCE
from penstock.control.cli.since import since as time_of
from penstock.control.errors import Unavailable
from penstock.control.outside.admin_client import AdminClient
from penstock.control.state.events import EventKind, EventType

ASK_AGAIN = timedelta(seconds=1)
HEAD_AWAY = 60  # times in a row


@asks_head("events")
def events(
    head: Head,
    follow: Annotated[bool, typer.Option("-f", "--follow", help="Go on as they come.")] = False,
    kind: Annotated[EventKind | None, typer.Option(help="What they are about.")] = None,
    name: Annotated[str, typer.Option(help="Of what they happened to.")] = "",
    deployment: Annotated[str, typer.Option(help="That they concern.")] = "",
    reason: Annotated[str, typer.Option(help="Such as RolledBack.")] = "",
    type_: Annotated[EventType | None, typer.Option("--type", help="How bad they are.")] = None,
    since: Annotated[str, typer.Option(metavar="TIME", help=SINCE)] = "",
    last: Annotated[int, typer.Option(min=1, max=1000, help="The newest so many.")] = 100,
) -> None:
    """Show what happened, oldest first: kept for seven days.

    With --json and -f, each is an object on a line of its own.

    \b
    Examples:
      penstock events
      penstock events -f --type warning
      penstock events --deployment mini --since 2h
    """
    said = {
        "kind": kind or "",
        "name": name,
        "deployment": deployment,
        "reason": reason,
        "type": type_ or "",
        "since": time_of(since) if since else "",
    }
    wanted = {key: str(value) for key, value in said.items() if value}
    if follow:
        head.ask(lambda admin: _follow(admin, wanted, last, as_json=head.as_json))
        return
    found = head.ask(lambda admin: admin.events(wanted, last=last))
    if head.as_json:
        typer.echo(json.dumps([each.model_dump(mode="json") for each in found], indent=2))
    else:
        say_events(found)


def say_events(found: Sequence[EventModel]) -> None:
    """One on each line."""
    for each in found:
        typer.echo(line(each))


def line(it: EventModel) -> str:
    """An event in words."""
    often = f" ({it.count} times since {it.first_at:%m-%d %H:%M})" if it.count > 1 else ""
    return f"{it.last_at:%Y-%m-%d %H:%M:%S}  {it.type:<7}  {it.reason:<19}  {it.text}{often}"


async def _follow(
    admin: AdminClient, wanted: Mapping[str, str], last: int, *, as_json: bool
) -> None:
    """A head that is started anew in between is waited for: nothing is told twice, or left out."""
    shown = await admin.events(wanted, last=last)
    for each in shown:
        typer.echo(each.model_dump_json() if as_json else line(each))
    every = {key: said for key, said in wanted.items() if key != "since"}
    after, away = shown[-1].id if shown else None, 0
    while True:
        try:
            async for told in admin.follow_events(every, after):
                away = 0
                if isinstance(told, EventModel):
                    after = told.id
                    typer.echo(told.model_dump_json() if as_json else line(told))
                elif isinstance(told, GapModel):
                    typer.echo(told.text, err=True)
                else:
                    after = told
        except Unavailable:
            away += 1
            if away > HEAD_AWAY:
                raise
        await asyncio.sleep(ASK_AGAIN.total_seconds())
