"""`penstock tenants`: who may send requests, and how many."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any

import typer
from pydantic import BaseModel

from penstock.control.admin.tenancy.tenant_models import TenantModel, TenantSpecModel
from penstock.control.cli.admin_calls import Head
from penstock.control.cli.asking import confirm, in_words, say, say_fields, say_list, verb
from penstock.control.cli.options import DryRun, Yes
from penstock.control.declared.fields import named
from penstock.control.declared.listing import key_list, listing
from penstock.control.serving.settings_text import checked, pairs, values_of
from penstock.control.state.tenancy.tenants import TenantSpec

tenants = typer.Typer(
    name="tenants",
    no_args_is_help=True,
    help="Who may send requests, and how many: create, list, set, delete.",
)

COLUMNS = ("id", "priority", "keys", "requests/min", "tokens/min", "tokens/day", "USD/day",
           "streams", "models", "adapters", "quota")  # fmt: skip
SALT, OWN = "cache_salt", "own"

TenantId = Annotated[str, typer.Argument(metavar="TENANT", help="Its id.")]
Limits = Annotated[
    list[str] | None,
    typer.Argument(metavar="[KEY=VALUE]...", help="Limits, as the list below has them."),
]


@verb(tenants, "create")
@listing(keys=key_list(named(TenantSpec), cache_salt=OWN))
def create(head: Head, tenant: TenantId, limits: Limits = None, dry_run: DryRun = False) -> None:
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
    _say(head, made, "would be made" if dry_run else "is made")


@verb(tenants, "list")
def list_tenants(head: Head) -> None:
    """Show all tenants.

    Example: penstock tenants list
    """
    found = head.ask(lambda admin: admin.tenants())
    say_list(head, "Tenants", COLUMNS, found, _row)


@verb(tenants, "show")
def show_tenant(head: Head, tenant: TenantId) -> None:
    """Show one tenant with all its limits.

    Example: penstock tenants show acme
    """
    found = head.ask(lambda admin: admin.tenant(tenant))
    say_fields(head, found, _told)


@verb(tenants, "set")
def set_limits(
    head: Head,
    tenant: TenantId,
    limits: Annotated[
        list[str], typer.Argument(metavar="KEY=VALUE...", help="As in `penstock tenants create`.")
    ],
    dry_run: DryRun = False,
) -> None:
    """Change what a tenant is held to; what is not named stays, and so do its keys.

    Example: penstock tenants set acme requests_per_minute=60 priority=low
    """
    asked = _limits(limits)
    changed = head.ask(lambda admin: admin.change_tenant(tenant, asked, dry_run=dry_run))
    _say(head, changed, "would be changed" if dry_run else "is changed")


@verb(tenants, "delete")
def delete(head: Head, tenant: TenantId, yes: Yes = False) -> None:
    """Delete a tenant and its keys; `penstock usage TENANT` still shows what it used.

    At a terminal it asks first; elsewhere it takes --yes.

    Example: penstock tenants delete acme
    """
    if not yes:
        known = head.ask(lambda admin: admin.tenant(tenant))
        confirm(f"tenant {known.id} is deleted, its keys ({known.keys}) are refused from then on")
    head.ask(lambda admin: admin.delete_tenant(tenant))
    say(head, {"deleted": tenant}, f"tenant {tenant} is deleted")


def _say(head: Head, tenant: TenantModel, what: str) -> None:
    words = f"tenant {tenant.id} {what} (generation {tenant.generation})"
    say(head, tenant, words)


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
