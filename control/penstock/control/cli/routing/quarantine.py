"""`penstock quarantine`: requests that are refused because engines died with them aboard."""

from __future__ import annotations

from typing import Annotated

import typer

from penstock.control.admin.routing.quarantine_models import SuspectModel
from penstock.control.cli.admin_calls import Head
from penstock.control.cli.asking import say, say_list, verb
from penstock.control.cli.tables import day
from penstock.control.errors import NotFound
from penstock.control.outside.admin_client import AdminClient

quarantine = typer.Typer(
    name="quarantine", no_args_is_help=True, help="Requests that engines died of: list, release."
)

COLUMNS = ("fingerprint", "state", "deployment", "path", "deaths", "until")
# Digits of a fingerprint that are shown, and that are enough to name it.
SHORT = 12


@verb(quarantine, "list")
def list_quarantine(head: Head) -> None:
    """Show suspects, those that are refused first.

    Example: penstock quarantine list
    """
    known = head.ask(lambda admin: admin.quarantine())
    found = sorted(known, key=lambda it: (not it.quarantined, it.until))
    say_list(head, "Quarantine", COLUMNS, found, _row)


@verb(quarantine, "release")
def release(
    head: Head, fingerprint: Annotated[str, typer.Argument(help="Its first digits are enough.")]
) -> None:
    """Let gateways take a request again.

    Example: penstock quarantine release 3f9ac0d21b44
    """
    released = head.ask(lambda admin: _release(admin, fingerprint))
    say(head, {"released": released}, f"{released} is released")


async def _release(admin: AdminClient, beginning: str) -> str:
    known = [each.fingerprint for each in await admin.quarantine()]
    found = [each for each in known if beginning and each.startswith(beginning.lower())]
    if len(found) != 1:
        many = f"{len(found)} fingerprints begin" if found else "no fingerprint begins"
        raise NotFound(f"{many} with {beginning!r}: `penstock quarantine list` shows them")
    await admin.release(found[0])
    return found[0]


def _row(it: SuspectModel) -> tuple[str, ...]:
    state = "quarantined" if it.quarantined else "suspect"
    deaths = str(len(it.deaths))
    until = day(it.until)
    return (it.fingerprint[:SHORT], state, it.deployment, it.path, deaths, until)
