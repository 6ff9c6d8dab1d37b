"""`penstock tenants`: who may send requests, and how many."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Annotated, Any

import typer
from pydantic import BaseModel

from penstock.control.admin.tenancy.tenant_models import TenantModel, TenantSpecModel
from penstock.control.cli.admin_calls import Head
from penstock.control.cli.asking import asks_head, confirm, in_words, say, say_fields, say_list
from penstock.control.cli.options import AsJson, DryRun, Yes
from penstock.control.declared.fields import named
from penstock.control.declared.listing import key_list, listing
from penstock.control.serving.settings_text import checked, pairs, values_of
from penstock.control.state.tenancy.tenants import TenantSpec

tenants = typer.Typer(
    no_args_is_help=True, help="Who may send requests, and how many: create, list, set, delete."
)

COLUMNS = ("id", "priority", "keys", "requests/min", "tokens/min", "tokens/day", "USD/day",
           "streams", "models", "adapters", "quota")  # fmt: skip
SALT, OWN = "cache_salt", "own"

TenantId = Annotated[str, typer.Argument(metavar="TENANT", help="Its id.")]
Limits = Annotated[
    list[str] | None,
    typer.Argument(metavar="[KEY=VALUE]...", help="Limits, as the list below has them."),
]


@tenants.command()
@asks_head("tenants create")
@listing(keys=key_list(named(TenantSpec), cache_salt=OWN))
def create(
    head: Head,
    tenant: TenantId,
    limits: Limits = None,
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """Make a tenant. Its requests need a key: `penstock keys create TENANT`.

    \b
    Keys, with their defaults; limits are of all gateways together, 0 is none:
      {keys}

    \b
    Examples:
      penstock tenants create acme
      penstock tenants create acme requests_per_minute=600 tokens_per_day=1000000 models=mini
    """
    asked = _limits(limits or ())
    made = head.ask(lambda admin: admin.create_tenant(tenant, asked, dry_run=dry_run))
    _say(made, "would be made" if dry_run else "is made", as_json=as_json)


@tenants.command("list")
@asks_head("tenants list")
def list_tenants(head: Head, as_json: AsJson = False) -> None:
    """Show all tenants.

    Example: penstock tenants list
    """
    found = head.ask(lambda admin: admin.tenants())
    say_list("Tenants", COLUMNS, found, _row, as_json=as_json)


@tenants.command("show")
@asks_head("tenants show")
def show_tenant(head: Head, tenant: TenantId, as_json: AsJson = False) -> None:
    """Show one tenant with all its limits.

    Example: penstock tenants show acme
    """
    found = head.ask(lambda admin: admin.tenant(tenant))
    say_fields(found, _told, as_json=as_json)


@tenants.command("set")
@asks_head("tenants set")
def set_limits(
    head: Head,
    tenant: TenantId,
    limits: Annotated[
        list[str], typer.Argument(metavar="KEY=VALUE...", help="As in `penstock tenants create`.")
    ],
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """Change what a tenant is held to; what is not named stays, and so do its keys.

    Example: penstock tenants set acme requests_per_minute=60 priority=low
    """
    asked = _limits(limits)
    changed = head.ask(lambda admin: admin.change_tenant(tenant, asked, dry_run=dry_run))
    _say(changed, "would be changed" if dry_run else "is changed", as_json=as_json)


@tenants.command()
@asks_head("tenants delete")
def delete(head: Head, tenant: TenantId, yes: Yes = False, as_json: AsJson = False) -> None:
    """Delete a tenant and its keys; `penstock usage TENANT` still shows what it used.

    At a terminal it asks first; elsewhere it takes --yes.

    Example: penstock tenants delete acme
    """
    if not yes:
        known = head.ask(lambda admin: admin.tenant(tenant))
        confirm(f"tenant {known.id} is deleted, its keys ({known.keys}) are refused from then on")
    head.ask(lambda admin: admin.delete_tenant(tenant))
    typer.echo(json.dumps({"deleted": tenant}) if as_json else f"tenant {tenant} is deleted")


def _say(tenant: TenantModel, what: str, *, as_json: bool) -> None:
    words = f"tenant {tenant.id} {what} (generation {tenant.generation})"
    say(tenant, words, as_json=as_json)


def limits_of(words: Iterable[str], kind: type[BaseModel], example: str) -> dict[str, Any]:
    """What is named, as the admin API takes it. Raises `invalid-setting`."""
    parsed = values_of(pairs(words, "limit", example), TenantSpec, cache_salt=_salt)
    return checked(kind, parsed).model_dump(mode="json", exclude_unset=True)


def _limits(words: Iterable[str]) -> dict[str, Any]:
    return limits_of(words, TenantSpecModel, "max_streams=10")


def _salt(text: str) -> str | None:
    return None if text in (OWN, "null") else text


def _told(name: str, value: Any) -> str:
    return OWN if name == SALT and value is None else in_words(value)


def _row(it: TenantModel) -> tuple[str, ...]:
    limits = (
        it.requests_per_minute,
        it.tokens_per_minute,
        it.tokens_per_day,
        it.usd_per_day,
        it.max_streams,
    )
    return (
        it.id,
        it.priority,
        str(it.keys),
        *(str(limit or "") for limit in limits),
        ",".join(it.models),
        ",".join(it.adapters),
        "used up" if it.quota_used_up else "",
    )
