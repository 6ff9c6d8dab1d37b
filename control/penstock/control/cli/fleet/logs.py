"""`penstock logs`: what replicas wrote, and so why one failed."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import timedelta
from typing import Annotated

import typer

from penstock.control.cli.admin_calls import Head
from penstock.control.cli.asking import asks_head
from penstock.control.cli.fleet.fleet_logs import Wanted, fleet_logs, lines_of, say_line
from penstock.control.cli.outcome import finish
from penstock.control.cli.since import HELP as SINCE
from penstock.control.cli.since import since as time_of
from penstock.control.errors import Code, NotFound, PenstockError, invalid_setting
from penstock.control.managers.fleet.replica_logs import ERROR, MOST_LINES, OURS, USUAL_LINES
from penstock.control.outside.admin_client import AdminClient

LOOK_EVERY = timedelta(seconds=1)
HOUR = "1h"  # that is looked through for a request, where nobody says since when

Asked = Mapping[str, int | bool]


@asks_head("logs")
def logs(
    head: Head,
    name: Annotated[
        str,
        typer.Argument(
            metavar="REPLICA|DEPLOYMENT", help="As `penstock status` shows it.", show_default=False
        ),
    ] = "",
    every: Annotated[
        bool,
        typer.Option("--all", help="Of all processes: head, gateways, agents, replicas, ..."),
    ] = False,
    request: Annotated[
        str, typer.Option(metavar="ID", help="Lines that name this request: our id, or yours.")
    ] = "",
    since: Annotated[str, typer.Option(metavar="TIME", help=SINCE)] = "",
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on with what is written from now on.")
    ] = False,
    previous: Annotated[
        bool, typer.Option("--previous", help="Of the process before the one started last.")
    ] = False,
    tail: Annotated[
        int, typer.Option(min=0, max=MOST_LINES, help="Lines of before, the last of them.")
    ] = USUAL_LINES,
) -> None:
    """Show what a replica wrote since it was last started; of a deployment, what each did.

    Also of a replica that is gone, as long as its log is kept; of a deployment the one that its
    newest revision failed by. Ends with 1 where it could not be read to the end.

    With --all, --request or --since: what is kept of all processes, or of those of that name, by
    time, each line with who wrote it before it; --request alone looks through the last hour. With
    --json each line is an object.

    \b
    Examples:
      penstock logs mini-3f2a1c
      penstock logs mini -f
      penstock logs mini-3f2a1c --previous --tail 50
      penstock logs --all -f --since 10m
      penstock logs --request req_5f2a0c31b7d94e6f8a1b2c3d
    """
    if previous and follow:
        raise invalid_setting("--previous and --follow: what has ended cannot be followed")
    if not name and not (every or request):
        raise invalid_setting("name a replica or a deployment, or say --all")
    if name and every:
        raise invalid_setting(f"{name} and --all: say one of them")
    if name and not (request or since or head.as_json):
        asked = {"tail": tail, "previous": previous, "follow": follow}
        done = head.ask(lambda admin: _shown(admin, name, asked))
    elif previous:
        raise invalid_setting("--previous: of one replica, by its name alone")
    else:
        since = since or (HOUR if request else "")
        wanted: Wanted = {"of": name, "request": request, "tail": tail, "follow": follow}
        wanted |= {"since": time_of(since)} if since else {}
        done = head.ask(lambda admin: fleet_logs(admin, wanted, as_json=head.as_json))
    if not done:
        finish(1)


async def _shown(admin: AdminClient, name: str, asked: Asked) -> bool:
    """Whether everything was."""
    if await admin.deployment(name) is None:
        return await _one(admin, name, asked)
    if asked["follow"]:
        return await _all_followed(admin, name, asked)
    found = await _replicas(admin, name)
    if not found:
        raise NotFound(f"{name} has no replica, and none of it failed", Code.UNKNOWN_REPLICA)
    return all([await _each(admin, replica, asked) for replica in found])


async def _all_followed(admin: AdminClient, name: str, asked: Asked) -> bool:
    """Those that come meanwhile too, until there is no such deployment."""
    tasks: dict[str, asyncio.Task[bool]] = {}
    async with asyncio.TaskGroup() as group:
        try:
            while await admin.deployment(name):
                for replica in await _replicas(admin, name):
                    if replica not in tasks:
                        tasks[replica] = group.create_task(_each(admin, replica, asked))
                asked = {**asked, "tail": MOST_LINES}  # of a newcomer, all
                await asyncio.sleep(LOOK_EVERY.total_seconds())
        except PenstockError as error:
            _say(f"{ERROR}{error}")
            return False
    return all(task.result() for task in tasks.values())


async def _replicas(admin: AdminClient, name: str) -> list[str]:
    """Of a deployment, and the one that its newest revision failed by."""
    known = await admin.deployment(name)
    told = known.status.rollout if known else None
    failed = told.failed_replica if told else ""
    found = {replica.id for replica in await admin.replicas(deployment=name)}
    return sorted(found | ({failed} if failed else set()))


async def _each(admin: AdminClient, replica: str, asked: Asked) -> bool:
    try:
        return await _one(admin, replica, asked, before=f"{replica}: ")
    except PenstockError as error:
        return _say(f"{ERROR}{error}", f"{replica}: ")


async def _one(admin: AdminClient, replica: str, asked: Asked, *, before: str = "") -> bool:
    whole = True
    async for line in lines_of(admin.replica_log(replica, **asked)):
        whole &= _say(line, before)
    return whole


def _say(line: str, before: str = "") -> bool:
    """Prints it; whether it is no error."""
    say_line(f"{before}{line}", err=line.startswith(OURS))
    return not line.startswith(ERROR)
