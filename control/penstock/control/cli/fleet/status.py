"""`penstock status`: what runs, as tables or as JSON."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated

import typer
from pydantic import BaseModel

from penstock.control.admin.canary.models import CanaryRunModel
from penstock.control.admin.rollout.models import (
    DeploymentModel,
    GatewayModel,
    NodeModel,
    ReplicaModel,
)
from penstock.control.admin.status_models import ProblemModel
from penstock.control.admin.version_models import VersionModel
from penstock.control.cli.admin_calls import Head
from penstock.control.cli.asking import asks_head
from penstock.control.cli.canary_tables import canary_parts
from penstock.control.cli.failures import more, why
from penstock.control.cli.money import dollars
from penstock.control.cli.objective_tables import objective_parts
from penstock.control.cli.program_tables import program_parts, replica_note
from penstock.control.cli.tables import Note, Part, listing, memory_of, notes, show
from penstock.control.outside.admin_client import AdminClient
from penstock.control.state.problems import LONGEST_TEXT, ProblemKind, shortened
from penstock.control.state.rollout.lease import Owner
from penstock.control.state.switch import Switch

GIB = 1024**3
SOMETHING_IS_WRONG = 2  # 1: nobody could be asked


@dataclass(frozen=True, slots=True)
class Everything:
    """What the head knows."""

    deployments: Sequence[DeploymentModel]
    replicas: Sequence[ReplicaModel]
    nodes: Sequence[NodeModel]
    gateways: Sequence[GatewayModel]
    head: VersionModel | None = None
    problems: Sequence[ProblemModel] = ()
    canaries: Sequence[CanaryRunModel] = ()


@asks_head("status")
def status(
    head: Head,
    check: Annotated[
        bool, typer.Option("--check", help="Exit with 2 where anything is wrong.")
    ] = False,
) -> None:
    """Show what is wrong, then deployments, canaries that go on, replicas, nodes and gateways.

    \b
    Examples:
      penstock status
      penstock status --json | jq '.replicas[].state'
      penstock status --check > /dev/null || echo "look at it"
      penstock status --admin 10.0.0.1:8081
    """
    everything = head.ask(_everything)
    if head.as_json:
        typer.echo(json.dumps(to_json(everything), indent=2))
    else:
        show(*to_parts(everything))
    if check and everything.problems:
        raise typer.Exit(SOMETHING_IS_WRONG)


def to_json(everything: Everything) -> dict[str, object]:
    """The lists as the admin API gives them, and the head itself."""

    def dumped(models: Iterable[BaseModel]) -> list[object]:
        return [model.model_dump(mode="json") for model in models]

    head = everything.head
    return {
        "head": head.model_dump(mode="json") if head else None,
        "problems": dumped(everything.problems),
        "deployments": dumped(everything.deployments),
        "replicas": dumped(everything.replicas),
        "nodes": dumped(everything.nodes),
        "gateways": dumped(everything.gateways),
        "canaries": dumped(everything.canaries),
    }


def to_parts(everything: Everything) -> list[Part]:
    """Each list, with what a person wants to know first; reasons stand below."""
    deployments, replicas = everything.deployments, everything.replicas
    of_people = [it for it in deployments if it.owner != Owner.ENGINES]
    engines = [it for it in deployments if it.owner == Owner.ENGINES]
    unobserved = {it.subject for it in everything.problems if it.kind == ProblemKind.NODE_SILENT}
    return [
        *notes((f"! {it.subject}", it.text) for it in everything.problems),
        listing("Deployments", DEPLOYMENT_COLUMNS, map(_deployment, of_people)),
        *([listing("Engines", DEPLOYMENT_COLUMNS, map(_deployment, engines))] if engines else ()),
        *notes((it.name, why(it, LONGEST_TEXT)) for it in deployments),
        listing("Load", LOAD_COLUMNS, map(_load, deployments)),
        *notes((it.name, _resumed(it)) for it in deployments),
        *canary_parts(everything.canaries),
        *objective_parts(deployments),
        *_spends(deployments),
        *program_parts(deployments),
        listing("Replicas", REPLICA_COLUMNS, (_replica(it, unobserved) for it in replicas)),
        *notes((it.id, _error(it)) for it in replicas),
        *notes((it.id, _doubts(it)) for it in replicas),
        *notes((it.id, _hands_over(it)) for it in replicas),
        *notes(map(replica_note, replicas)),
        *_why_not_resumed(deployments, replicas),
        listing("Nodes", NODE_COLUMNS, map(_node, everything.nodes)),
        *notes((it.id, _why_not_warm(it)) for it in everything.nodes),
        listing("Gateways", GATEWAY_COLUMNS, map(_gateway, everything.gateways)),
        *notes((it.id, it.last_error) for it in everything.gateways),
    ]


def _spends(deployments: Sequence[DeploymentModel]) -> list[Part]:
    """Of those that cost money or have a budget; nothing where none does."""
    found = [it for it in deployments if _costs_money(it) or _has_budget(it)]
    if not found:
        return []
    return [
        listing("Spend", SPEND_COLUMNS, map(_spend, found)),
        *notes((it.name, _resets(it)) for it in found),
    ]


DEPLOYMENT_COLUMNS = ("name", "state", "ready", "engine", "model", "adapters")


def _deployment(it: DeploymentModel) -> tuple[str, ...]:
    counts = f"{it.status.ready}/{it.status.wanted}"
    adapters = ", ".join(it.aliases)
    engine = f"{it.spec.engine} (managed)" if it.managed else it.spec.engine
    return (it.name, it.status.phase, counts, engine, it.spec.model, adapters)


SPEND_COLUMNS = ("name", "budget", "USD today", "of USD", "tokens today", "of tokens")


def _spend(it: DeploymentModel) -> tuple[str, ...]:
    spec, budget = it.spec, it.status.budget
    state = "used up" if budget.used_up else "left" if _has_budget(it) else "none"
    usd = dollars(spec.budget_usd_per_day) if spec.budget_usd_per_day else ""
    tokens = f"{spec.budget_tokens_per_day:,}" if spec.budget_tokens_per_day else ""
    today = budget.today
    return (it.name, state, dollars(today.usd), usd, f"{today.tokens:,}", tokens)


def _costs_money(it: DeploymentModel) -> bool:
    return it.managed or bool(it.spec.usd_per_million_input or it.spec.usd_per_million_output)


def _has_budget(it: DeploymentModel) -> bool:
    return bool(it.spec.budget_usd_per_day or it.spec.budget_tokens_per_day)


def _resets(it: DeploymentModel) -> str:
    budget = it.status.budget
    if not budget.used_up or budget.resets_at is None:
        return ""
    return f"it takes nothing until {budget.resets_at:%Y-%m-%d %H:%M} UTC"


LOAD_COLUMNS = ("name", "state", "in flight", "queued", "next waits", "waited", "shed")


def _load(it: DeploymentModel) -> tuple[str, ...]:
    load = it.status.load
    # Without a replica there is nothing to go by, and 0 ms would be a promise.
    estimate = _duration(load.estimated_wait_ms) if it.status.ready else ""
    waits = (estimate, _duration(load.queue_wait_ms))
    shed = f"{100 * load.shed_share:.1f}%"
    return (it.name, it.status.phase, str(load.in_flight), str(load.queued), *waits, shed)


def _resumed(it: DeploymentModel) -> str:
    load = it.status.load
    told = load.resumed or load.not_resumed
    return f"answers resumed: {load.resumed}, {load.not_resumed} not" if told else ""


def _duration(milliseconds: float) -> str:
    return f"{milliseconds / 1000:.1f} s" if milliseconds >= 1000 else f"{milliseconds:.0f} ms"


REPLICA_COLUMNS = ("id", "state", "node", "address", "pid", "restarts", "memory")


def _replica(it: ReplicaModel, unobserved: Collection[str]) -> tuple[str, ...]:
    old = f"node {it.node}" in unobserved and it.state != "lost"
    state = f"{it.state}, node silent" if old else it.state
    where = (it.id, state, it.node, it.address, _pid(it.pid))
    return (*where, str(it.restarts), memory_of(it))


def _error(it: ReplicaModel) -> str:
    ended = it.state in ("failed", "backoff")
    return f"{shortened(it.last_error)}{more(it.id) if ended else ''}"


def _doubts(it: ReplicaModel) -> str:
    return "; ".join(
        f"{doubt.gateway} sends it nothing for {_duration(doubt.for_ms)}: {doubt.reason}"
        for doubt in it.doubts
    )


def _hands_over(it: ReplicaModel) -> str:
    at = it.hand_over_at
    return f"its streams go on at other replicas from {at:%H:%M:%S} UTC on" if at else ""


def _why_not_resumed(
    deployments: Sequence[DeploymentModel], replicas: Sequence[ReplicaModel]
) -> list[Note]:
    """Of replicas that might go on with others' answers, as their deployment says, and do not."""
    may = {it.name for it in deployments if it.spec.resume == Switch.ON and not it.managed}
    return notes(
        (it.id, f"goes on with no answer that another began: {shortened(it.no_resume)}")
        for it in replicas
        if it.no_resume and it.deployment in may
    )


NODE_COLUMNS = ("id", "state", "address", "pid", "cores", "GPUs", "memory free", "warm")


def _node(it: NodeModel) -> tuple[str, ...]:
    memory = f"{it.memory_available_bytes / GIB:.1f} of {it.memory_bytes / GIB:.1f} GiB"
    used = sum(device.memory_used_bytes for device in it.devices)
    if total := sum(device.memory_bytes for device in it.devices):
        memory += f", GPUs {(total - used) / GIB:.1f} of {total / GIB:.1f}"
    state = f"{it.state}, drained" if it.draining else it.state
    return (it.id, state, it.address, _pid(it.pid), str(it.cpus), str(it.gpus), memory, _warm(it))


def _warm(it: NodeModel) -> str:
    """Processes that wait to be a replica, and how many are to."""
    pool = it.warm_pool
    return f"{pool.waiting} of {pool.target}" if pool else ""


def _why_not_warm(it: NodeModel) -> str:
    pool = it.warm_pool
    return f"warm pool: {pool.reason}" if pool and pool.reason else ""


GATEWAY_COLUMNS = ("id", "state", "address", "pid", "restarts", "in flight", "queued", "requests")


def _gateway(it: GatewayModel) -> tuple[str, ...]:
    counts = (str(it.restarts), str(it.in_flight), str(it.queued), str(it.requests))
    return (it.id, it.state, it.address, _pid(it.pid), *counts)


def _pid(pid: int) -> str:
    return str(pid) if pid else ""


async def _everything(admin: AdminClient) -> Everything:
    return Everything(
        await admin.deployments(),
        await admin.replicas(),
        await admin.nodes(),
        await admin.gateways(),
        await admin.version(),
        (await admin.status()).problems,
        [it for it in await admin.canaries() if it.ended_at is None],
    )
