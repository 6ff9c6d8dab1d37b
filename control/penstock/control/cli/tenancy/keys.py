"""`penstock keys`: what clients of the gateways show."""

from __future__ import annotations

from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated

import typer

from penstock.control.admin.tenancy.tenant_models import KeyLimits, KeyModel
from penstock.control.cli.admin_calls import Head
from penstock.control.cli.asking import say, say_list, verb
from penstock.control.cli.tables import day
from penstock.control.cli.tenancy.tenants import TenantId, limits_of
from penstock.control.declared.fields import named
from penstock.control.declared.listing import key_list, listing
from penstock.control.state.tenancy.tenants import ApiKey

keys = typer.Typer(
    name="keys",
    no_args_is_help=True,
    help="API keys of tenants: create, list, revoke; who needs one.",
)

COLUMNS = ("id", "name", "created", "expires", "tokens/day", "USD/day")


class Wanted(StrEnum):
    """What becomes of requests without a key."""

    ALLOW = "allow"
    REFUSE = "refuse"


@verb(keys, "create")
@listing(keys=key_list(each for each in named(ApiKey) if each.name in KeyLimits.model_fields))
def create(
    head: Head,
    tenant: TenantId,
    name: Annotated[str, typer.Option(help="For people.")] = "",
    expires_in_days: Annotated[
        int | None, typer.Option(min=1, help="From when it is refused. Default: never.")
    ] = None,
    expires_at: Annotated[
        datetime | None, typer.Option(help="The same as a moment of UTC.")
    ] = None,
    limits: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Its own limits: see below."),
    ] = None,
) -> None:
    """Make a key and show it, this once. It works at every gateway within a second.

    The first key ever made has requests without one refused at all gateways, and says so.

    \b
    Limits of the key, besides those of its tenant; 0 is none:
      {keys}

    Example: penstock keys create acme --set usd_per_day=5
    """
    until = expires_at.replace(tzinfo=UTC) if expires_at else None
    held_to = limits_of(limits or (), KeyLimits, "usd_per_day=5")
    made = head.ask(lambda admin: admin.create_key(tenant, name, expires_in_days, until, held_to))
    words = f"key {made.id} of {made.tenant}; keep it, it is not shown again\n{made.key}"
    say(head, made, words)
    if made.warning and not head.as_json:
        typer.echo(f"warning: {made.warning}", err=True)


@verb(keys, "list")
def list_keys(head: Head, tenant: TenantId) -> None:
    """Show a tenant's keys, without the keys themselves.

    Example: penstock keys list acme
    """
    found = sorted(head.ask(lambda admin: admin.keys(tenant)), key=lambda it: it.created_at)
    say_list(head, f"Keys of {tenant}", COLUMNS, found, _row)


@verb(keys, "revoke")
def revoke(
    head: Head,
    tenant: TenantId,
    key: Annotated[str, typer.Argument(help="Its id, as `penstock keys list` shows it.")],
    end_streams: Annotated[
        bool, typer.Option("--end-streams", help="End what is under way with it, too.")
    ] = False,
) -> None:
    """Let nobody in with a key any more, at any gateway, within a second.

    Answers that are under way with it go on to their end; with --end-streams each ends within two
    seconds, with the error key_revoked. That has to be said at once: a revoked key is known no
    more. Example: penstock keys revoke acme key_3f9ac0d21b44 --end-streams
    """
    head.ask(lambda admin: admin.revoke_key(tenant, key, end_streams=end_streams))
    said = {"revoked": key, "streams": "ended" if end_streams else "kept"}
    say(head, said, _revoked(tenant, key, end_streams=end_streams))


@verb(keys, "anonymous")
def anonymous(
    head: Head,
    wanted: Annotated[Wanted | None, typer.Argument(help="Without: say how it is.")] = None,
) -> None:
    """Answer requests without a key, or refuse them.

    Where they are allowed each gateway goes by its own flags: on the loopback it answers, beyond
    it only with --open. Example: penstock keys anonymous refuse
    """
    if wanted is None:
        told = head.ask(lambda admin: admin.access())
    else:
        said = wanted is Wanted.ALLOW
        told = head.ask(lambda admin: admin.set_anonymous("allowed" if said else "refused"))
    say(head, told, f"requests without a key are {told.anonymous}")


def _revoked(tenant: str, key: str, *, end_streams: bool) -> str:
    go_on = "go on to their end (--end-streams ends them)"
    becomes = "end with the error key_revoked" if end_streams else go_on
    return f"key {key} of {tenant} is revoked; answers that are under way with it {becomes}"


def _row(it: KeyModel) -> tuple[str, ...]:
    return (
        it.id,
        it.name,
        day(it.created_at),
        day(it.expires_at) or "never",
        str(it.tokens_per_day or ""),
        str(it.usd_per_day or ""),
    )
