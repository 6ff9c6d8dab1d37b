"""`penstock usage`: what requests cost, by day, tenant, key and model."""

from __future__ import annotations

import csv
import sys
from datetime import datetime
from typing import Annotated

import typer

from penstock.control.admin.tenancy.tenant_models import CountsModel, UsageModel, UsageRowModel
from penstock.control.cli.admin_calls import Head
from penstock.control.cli.asking import asks_head, say_json
from penstock.control.cli.money import dollars
from penstock.control.cli.tables import Note, listing, show
from penstock.control.state.tenancy.spend import NANO

CSV = ("day", "tenant", "key", "model", "adapter", "requests", "rejected", "prompt_tokens",
       "cached_tokens", "completion_tokens", "usd")  # fmt: skip
COLUMNS = ("day", "tenant", "key", "model", "requests", "rejected", "prompt", "cached",
           "completion")  # fmt: skip
DAY = ["%Y-%m-%d"]


@asks_head("usage")
def usage(
    head: Head,
    tenant: Annotated[str | None, typer.Argument(help="Its id; without: all.")] = None,
    since: Annotated[
        datetime | None,
        typer.Option("--from", formats=DAY, help="A day of UTC. Default: 29 days before the last."),
    ] = None,
    until: Annotated[
        datetime | None,
        typer.Option("--to", formats=DAY, help="A day of UTC, included. Default: today."),
    ] = None,
    as_csv: Annotated[
        bool, typer.Option("--csv", help="Rows for a spreadsheet, without their sum.")
    ] = False,
) -> None:
    """Show requests and tokens by day, tenant, key and model, and their sum.

    A request without a key is of the tenant "-". Example: penstock usage acme --from 2026-11-01
    """
    first, last = (moment.date() if moment else None for moment in (since, until))
    found = head.ask(lambda admin: admin.usage(tenant, first, last))
    if head.as_json:
        say_json(found)
        return
    if as_csv:
        csv.writer(sys.stdout, lineterminator="\n").writerows([CSV, *map(_cells, found.rows)])
        return
    title = f"Usage from {found.first} to {found.last}"
    columns, row = (COLUMNS, _row) if not found.total.cost_nanousd else ((*COLUMNS, "USD"), _dear)
    show(listing(title, columns, map(row, found.rows)), Note("in all", _sum(found)))


def _row(it: UsageRowModel) -> tuple[str, ...]:
    model = f"{it.model} ({it.adapter})" if it.adapter else it.model
    return (it.day.isoformat(), it.tenant or "-", it.key_id, model, *_numbers(it))


def _cells(it: UsageRowModel) -> tuple[str, ...]:
    """Empty for whoever came without a key, and for the base model."""
    cost = f"{it.cost_nanousd / NANO:.9f}".rstrip("0").rstrip(".")
    return (it.day.isoformat(), it.tenant, it.key_id, it.model, it.adapter, *_numbers(it), cost)


def _dear(it: UsageRowModel) -> tuple[str, ...]:
    return (*_row(it), _usd(it))


def _usd(it: CountsModel) -> str:
    return dollars(it.cost_nanousd / NANO)


def _numbers(it: CountsModel) -> tuple[str, ...]:
    counts = (it.requests, it.rejected, it.prompt_tokens, it.cached_tokens, it.completion_tokens)
    return tuple(map(str, counts))


def _sum(found: UsageModel) -> str:
    requests, rejected, prompt, cached, completion = _numbers(found.total)
    return (
        f"{requests} requests, {rejected} rejected, {prompt} prompt tokens ({cached} cached), "
        f"{completion} completion tokens"
        + (f", {_usd(found.total)}" if found.total.cost_nanousd else "")
    )
