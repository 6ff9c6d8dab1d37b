"""`penstock describe`: all that is known of one deployment, and why it is not as wanted."""

from __future__ import annotations

import json
from collections.abc import Sequence
from textwrap import indent
from typing import Annotated, Any, NamedTuple

import typer
from pydantic import BaseModel

from penstock.control.admin.canary.models import CanaryRunModel
from penstock.control.admin.event_models import EventModel
from penstock.control.admin.rollout.models import DeploymentModel, ReplicaModel
from penstock.control.admin.rollout.revision_models import RevisionModel
from penstock.control.cli.admin_calls import Head
from penstock.control.cli.asking import asks_head
from penstock.control.cli.canary_tables import canary_parts
from penstock.control.cli.events import say_events
from penstock.control.cli.program_tables import program_parts, replica_note
from penstock.control.cli.tables import day, listing, memory_of, notes, show
from penstock.control.errors import Code, NotFound
from penstock.control.outside.admin_client import AdminClient

EVENTS = 15  # that are shown
SHORT: Any = {"exclude_defaults": True, "exclude": {"program": {"file"}}}  # of a spec


class _Known(NamedTuple):
    deployment: DeploymentModel
    revisions: Sequence[RevisionModel]
    replicas: Sequence[ReplicaModel]
    events: Sequence[EventModel]
    canaries: Sequence[CanaryRunModel]


@asks_head("describe")
def describe(
    head: Head, name: Annotated[str, typer.Argument(help="The deployment, as clients name it.")]
) -> None:
    """Show a deployment: what was asked for beyond the defaults, its revisions, replicas and
    canaries, why it is not as wanted, and what happened last.

    Example: penstock describe mini
    """
    known = head.ask(lambda admin: _asked(admin, name))
    if head.as_json:
        told: dict[str, object] = {"deployment": known.deployment.model_dump(mode="json")}
        told["revisions"] = _dumped(known.revisions)
        told["replicas"] = _dumped(known.replicas)
        told["canaries"] = _dumped(known.canaries)
        told["events"] = _dumped(known.events)
        typer.echo(json.dumps(told, indent=2))
    else:
        _show(known)


def _dumped(models: Sequence[BaseModel]) -> list[object]:
    return [each.model_dump(mode="json") for each in models]


async def _asked(admin: AdminClient, name: str) -> _Known:
    deployment = await admin.deployment(name)
    if deployment is None:
        raise NotFound(f"no deployment {name!r}", Code.UNKNOWN_DEPLOYMENT)
    replicas = await admin.replicas(deployment=name)
    found = await admin.events({"deployment": name}, last=EVENTS)
    canaries = [it for it in await admin.canaries() if name in _deployments_of(it)]
    return _Known(deployment, await admin.revisions(name), replicas, found, canaries)


def _deployments_of(it: CanaryRunModel) -> tuple[str, str]:
    return it.target.partition(":")[0], it.candidate


def _show(known: _Known) -> None:
    it = known.deployment
    status, spec = it.status, it.spec.model_dump(mode="json", **SHORT)
    typer.echo(f"{it.name}: {status.phase}, {status.ready} of {status.wanted} replicas ready")
    if status.message:
        typer.echo(f"why: {status.message}")
    typer.echo(f"spec, where it is not the default (generation {it.generation}):")
    for key, value in spec.items():
        typer.echo(f"  {key}: {value if isinstance(value, str) else json.dumps(value)}")
    if text := it.spec.program and it.spec.program.file:
        typer.echo("program:\n" + indent(text, "  "))
    typer.echo()
    show(
        listing("Revisions", REVISION_COLUMNS, map(_revision, known.revisions)),
        *notes((str(each.number), each.cause or each.reason) for each in known.revisions),
        listing("Replicas", REPLICA_COLUMNS, map(_replica, known.replicas)),
        *notes((each.id, each.start.reason if each.start else "") for each in known.replicas),
        *notes((each.id, each.last_error) for each in known.replicas),
        *notes((each.id, each.leaving) for each in known.replicas),
        *notes(map(replica_note, known.replicas)),
        *canary_parts(known.canaries),
        *program_parts([it]),
    )
    typer.echo(f"\nEvents{'' if known.events else ': none'}")
    say_events(known.events)


REVISION_COLUMNS = ("revision", "state", "model", "at", "by")


def _revision(it: RevisionModel) -> tuple[str, ...]:
    number = f"{it.number}{' (current)' if it.current else ''}"
    return (number, it.state, it.spec.model, day(it.at), it.by)


REPLICA_COLUMNS = ("id", "state", "node", "revision", "restarts", "memory", "since", "start")


def _replica(it: ReplicaModel) -> tuple[str, ...]:
    counts = (str(it.revision or ""), str(it.restarts))
    return (it.id, it.state, it.node, *counts, memory_of(it), day(it.since), _start(it))


def _start(it: ReplicaModel) -> str:
    """Which kind it was, and what each part of it took."""
    if it.start is None or not it.start.kind:
        return ""
    stages = (f"{stage.name} {stage.ms / 1000:.1f}" for stage in it.start.stages)
    return f"{it.start.kind}: {', '.join(stages) or 'begins'}"
