"""`penstock test` and `penstock spend`: whether a deployment answers, and what it costs."""

from __future__ import annotations

from typing import Annotated

import typer

from penstock.control.admin.rollout.trial_models import TrialModel
from penstock.control.admin.tenancy.spend_models import SpendModel, SpentDayModel
from penstock.control.cli.admin_calls import Head
from penstock.control.cli.asking import asks_head, say, say_json
from penstock.control.cli.money import dollars
from penstock.control.cli.tables import Note, listing, notes, show
from penstock.control.state.rollout.trial import EMBEDDINGS, GENERATING

Name = Annotated[str, typer.Argument(help="The deployment, as clients name it.")]
DAY_COLUMNS = ("day", "USD", "requests", "prompt", "completion")


@asks_head("test")
def try_out(head: Head, name: Name) -> None:
    """Ask a deployment one small real question, past all queues and limits.

    A provider charges for it; no budget and no tenant's usage counts it.

    Example: penstock test cloud
    """
    told = head.ask(lambda admin: admin.test(name))
    say(head, told, "\n".join(_lines(told)))


@asks_head("spend")
def spend(head: Head, name: Name) -> None:
    """Show what a deployment spent today and on the days before, against its budgets.

    Example: penstock spend cloud
    """
    told = head.ask(lambda admin: admin.spend(name))
    if head.as_json:
        say_json(told)
        return
    days = listing(f"Spend of {told.deployment}", DAY_COLUMNS, map(_day, told.days))
    show(days, *notes([("today", _against(told))]), *_alarm(told))


def _lines(told: TrialModel) -> list[str]:
    said = f"a vector of {told.dimensions} numbers" if told.dimensions else repr(told.text)
    if told.endpoint not in (*GENERATING, EMBEDDINGS):
        said = f"{told.endpoint} works"
    tokens = f"{told.prompt_tokens} prompt tokens, {told.completion_tokens} completion tokens"
    version = f" {told.backend_version}" if told.backend_version else ""
    return [
        f"{told.deployment} answers in {told.total_ms:.0f} ms, the first of it after"
        f" {told.ttft_ms:.0f} ms: {said}",
        f"  {told.finish_reason or 'done'}; {tokens}; {dollars(told.cost_usd)}",
        f"  {told.model or 'its model'} by {told.backend}{version}, replica {told.replica},"
        f" request {told.request_id}",
    ]


def _day(it: SpentDayModel) -> tuple[str, ...]:
    counts = (it.requests, it.prompt_tokens, it.completion_tokens)
    return (it.day.isoformat(), dollars(it.usd), *map(str, counts))


def _against(told: SpendModel) -> str:
    money, tokens = dollars(told.today.usd), f"{told.today.tokens:,} tokens"
    if told.budget_usd_per_day:
        money += f" of {dollars(told.budget_usd_per_day)}"
    if told.budget_tokens_per_day:
        tokens += f" of {told.budget_tokens_per_day:,}"
    return f"{money}, {tokens}"


def _alarm(told: SpendModel) -> list[Note]:
    if not told.used_up or told.resets_at is None:
        return []
    return notes([("budget", f"used up, it begins anew at {told.resets_at:%Y-%m-%d %H:%M} UTC")])
