"""`penstock logs`: what replicas wrote, and so why one failed."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import timedelta
from typing import Annotated

import typer

from penstock.control.cli.admin_calls import Head
from penstock.control.cli.asking import asks_head
from penstock.control.cli.outcome import finish
from penstock.control.cli.tables import on_one_line
from penstock.control.errors import Code, NotFound, PenstockError, invalid_setting
from penstock.control.managers.fleet.replica_logs import ERROR, MOST_LINES, OURS, USUAL_LINES
from penstock.control.outside.admin_client import AdminClient

LOOK_EVERY = timedelta(seconds=1)

Asked = Mapping[str, int | bool]


@asks_head("logs", has_json=False)
def logs(
    head: Head,
    name: Annotated[
        str, typer.Argument(metavar="REPLICA|DEPLOYMENT", help="As `penstock status` shows it.")
    ],
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

    \b
    Examples:
      penstock logs mini-3f2a1c
      penstock logs mini -f
      penstock logs mini-3f2a1c --previous --tail 50
    """
    if previous and follow:
        raise invalid_setting("--previous and --follow: what has ended cannot be followed")
    asked = {"tail": tail, "previous": previous, "follow": follow}
    if not head.ask(lambda admin: _shown(admin, name, asked)):
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
    whole, begun = True, b""
    async for data in admin.replica_log(replica, **asked):
        *lines, begun = (begun + data).split(b"\n")
        for line in lines:
            whole &= _say(line.decode("utf-8", "replace"), before)
    return whole


def _say(line: str, before: str = "") -> bool:
    """Prints it, with nothing in it that a terminal would obey; whether it is no error."""
    shown = on_one_line(line)
    typer.echo(f"{before}{shown}", err=shown.startswith(OURS))
    return not shown.startswith(ERROR)
