"""Lines of the logs of all processes, each with who wrote it before it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final

import typer

from penstock.control.admin.fleet.log_models import LogEntryModel
from penstock.control.cli.tables import on_one_line
from penstock.control.machine_logs.sources import WARM_POOL_LOG
from penstock.control.machine_logs.values import PROGRAM
from penstock.control.managers.fleet.replica_logs import ERROR, OURS
from penstock.control.outside.admin_client import AdminClient

Wanted = dict[str, str | int | bool]
# Of which each machine may have one of the same name.
_OF_A_NODE: Final = (PROGRAM, WARM_POOL_LOG)


async def fleet_logs(admin: AdminClient, wanted: Wanted, *, as_json: bool) -> bool:
    """Prints them; whether all could be read."""
    whole = True
    async for line in lines_of(admin.logs(**wanted)):
        if not line:
            continue
        entry = LogEntryModel.model_validate_json(line)
        whole &= not entry.error
        if as_json:
            say_line(line)
        elif entry.note or entry.error:
            told = f"{ERROR}{entry.error}" if entry.error else f"{OURS}{entry.note}"
            say_line(told, err=True)
        else:
            say_line(f"{who(entry)}: {entry.line}")
    return whole


def who(entry: LogEntryModel) -> str:
    """Which process wrote it."""
    told = f"{entry.process} {entry.name}".strip()
    return f"{told} on {entry.node}" if entry.process in _OF_A_NODE and entry.node else told


async def lines_of(parts: AsyncIterator[bytes]) -> AsyncIterator[str]:
    """An answer's lines, as they come."""
    begun = b""
    async for data in parts:
        *lines, begun = (begun + data).split(b"\n")
        for line in lines:
            yield line.decode("utf-8", "replace")


def say_line(line: str, *, err: bool = False) -> None:
    """Prints it, with nothing in it that a terminal would obey."""
    typer.echo(on_one_line(line), err=err)
