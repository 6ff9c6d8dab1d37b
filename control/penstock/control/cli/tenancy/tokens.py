"""`penstock tokens`: who may use the admin API."""

from __future__ import annotations

from typing import Annotated

import typer

from penstock.control.admin.rollout.models import TokenModel
from penstock.control.cli.admin_calls import Head
from penstock.control.cli.asking import say, say_list, verb
from penstock.control.cli.tables import day
from penstock.control.errors import NotFound
from penstock.control.outside.admin_client import AdminClient
from penstock.control.state.tenancy.tokens import Role

tokens = typer.Typer(
    name="tokens", no_args_is_help=True, help="Tokens of the admin API: create, list, revoke."
)

COLUMNS = ("id", "role", "name", "created", "last used", "revoked")


@verb(tokens, "create")
def create(
    head: Head,
    name: Annotated[str, typer.Argument(help="Who the audit trail says it was.")],
    role: Annotated[
        Role,
        typer.Option(
            help="viewer reads, operator also changes, admin also makes tokens; router is for the"
            " MicroServing of replicas alone."
        ),
    ] = Role.VIEWER,
) -> None:
    """Make a token and show it, this once.

    Example: penstock tokens create alice --role operator
    """
    made = head.ask(lambda admin: admin.create_token(name, role))
    words = f"token {made.id} for {made.name}, role {made.role}; keep it, it is not shown again"
    say(head, made, f"{words}\n{made.token}")


@verb(tokens, "list")
def list_tokens(head: Head) -> None:
    """Show all tokens, without the tokens themselves.

    Example: penstock tokens list
    """
    found = sorted(head.ask(lambda admin: admin.tokens()), key=lambda it: it.created_at)
    say_list(head, "Tokens", COLUMNS, found, _row)


@verb(tokens, "revoke")
def revoke(head: Head, token: Annotated[str, typer.Argument(help="Its id or its name.")]) -> None:
    """Let nobody in with a token any more.

    Example: penstock tokens revoke alice
    """
    revoked = head.ask(lambda admin: _revoke(admin, token))
    what = {"revoked": revoked.id, "name": revoked.name}
    say(head, what, f"token {revoked.id} of {revoked.name} is revoked")


async def _revoke(admin: AdminClient, token: str) -> TokenModel:
    for known in await admin.tokens():
        if known.id == token or (known.name == token and known.revoked_at is None):
            await admin.revoke_token(known.id)
            return known
    raise NotFound(f"no token has the id or name {token!r}: `penstock tokens list` shows them")


def _row(it: TokenModel) -> tuple[str, ...]:
    times = (it.created_at, it.last_used_at, it.revoked_at)
    return (it.id, it.role, it.name, *map(day, times))
