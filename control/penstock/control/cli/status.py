"""`penstock status`: what runs, as tables or as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import typer
from pydantic import BaseModel
from rich.console import Console
from rich.table import Table
from rich.text import Text

from penstock.control.admin.models import DeploymentModel, GatewayModel, NodeModel, ReplicaModel
from penstock.control.cli.admin_calls import Head
from penstock.control.cli.options import AdminTokenFile, AdminUrl, AsJson, DataDir, TlsCa
from penstock.control.cli.outcome import explained
from penstock.control.outside.admin_client import AdminClient
from penstock.control.settings import ADMIN_ADDRESS, DATA_DIR

COLOURS = {
    "ready": "green",
    "starting": "yellow",
    "pending": "yellow",
    "updating": "yellow",
    "draining": "yellow",
    "degraded": "yellow",
    "backoff": "red",
    "failed": "red",
    "lost": "red",
    "silent": "red",
    "unresponsive": "red",
}
GIB = 1024**3


@dataclass(frozen=True, slots=True)
class Everything:
    """What the head knows."""

    deployments: Sequence[DeploymentModel]
    replicas: Sequence[ReplicaModel]
    nodes: Sequence[NodeModel]
    gateways: Sequence[GatewayModel]


def status(
    admin: AdminUrl = ADMIN_ADDRESS,
    data_dir: DataDir = Path(DATA_DIR),
    admin_token_file: AdminTokenFile = None,
    tls_ca: TlsCa = None,
    as_json: AsJson = False,
) -> None:
    """Show deployments, replicas, nodes and gateways.

    \b
    Examples:
      penstock status
      penstock status --json | jq '.replicas[].state'
      penstock status --admin 10.0.0.1:8081
    """
    with explained("status"):
        everything = Head(admin, data_dir, admin_token_file, tls_ca).ask(_everything)
    if as_json:
        typer.echo(json.dumps(to_json(everything), indent=2))
        return
    console = Console()
    for table in to_tables(everything):
        console.print(table)


def to_json(everything: Everything) -> dict[str, list[object]]:
    """The four lists as the admin API gives them."""

    def dumped(models: Iterable[BaseModel]) -> list[object]:
        return [model.model_dump(mode="json") for model in models]

    return {
        "deployments": dumped(everything.deployments),
        "replicas": dumped(everything.replicas),
        "nodes": dumped(everything.nodes),
        "gateways": dumped(everything.gateways),
    }


def to_tables(everything: Everything) -> list[Table]:
    """One table for each list, with what a person wants to know first."""
    return [
        _table("Deployments", DEPLOYMENT_COLUMNS, map(_deployment, everything.deployments)),
        _table("Replicas", REPLICA_COLUMNS, map(_replica, everything.replicas)),
        _table("Nodes", NODE_COLUMNS, map(_node, everything.nodes)),
        _table("Gateways", GATEWAY_COLUMNS, map(_gateway, everything.gateways)),
    ]


DEPLOYMENT_COLUMNS = ("name", "state", "ready", "engine", "model", "adapters", "message")


def _deployment(it: DeploymentModel) -> tuple[str, ...]:
    counts = f"{it.status.ready}/{it.status.wanted}"
    adapters = ", ".join(adapter.alias for adapter in it.spec.adapters)
    what = (it.spec.engine, it.spec.model, adapters)
    return (it.name, it.status.phase, counts, *what, it.status.message)


REPLICA_COLUMNS = ("id", "state", "node", "address", "pid", "restarts", "last error")


def _replica(it: ReplicaModel) -> tuple[str, ...]:
    process = (it.address, _pid(it.pid), str(it.restarts))
    return (it.id, it.state, it.node, *process, it.last_error)


NODE_COLUMNS = ("id", "state", "address", "pid", "cores", "GPUs", "memory free")


def _node(it: NodeModel) -> tuple[str, ...]:
    memory = f"{it.memory_available_bytes / GIB:.1f} of {it.memory_bytes / GIB:.1f} GiB"
    return (it.id, it.state, it.address, _pid(it.pid), str(it.cpus), str(it.gpus), memory)


GATEWAY_COLUMNS = ("id", "state", "address", "pid", "restarts", "in flight", "queued", "requests")


def _gateway(it: GatewayModel) -> tuple[str, ...]:
    counts = (str(it.restarts), str(it.in_flight), str(it.queued), str(it.requests))
    return (it.id, it.state, it.address, _pid(it.pid), *counts)


def _pid(pid: int) -> str:
    return str(pid) if pid else ""


def _table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Table:
    """Ids stay whole and the second column, the state, has its colour."""
    table = Table(title=title, title_justify="left", title_style="bold")
    for position, column in enumerate(columns):
        table.add_column(column, no_wrap=position < 2, overflow="fold")
    for row in rows:
        cells = [Text(cell) for cell in row]
        cells[1].stylize(COLOURS.get(row[1], ""))
        table.add_row(*cells)
    return table


async def _everything(admin: AdminClient) -> Everything:
    return Everything(
        await admin.deployments(),
        await admin.replicas(),
        await admin.nodes(),
        await admin.gateways(),
    )
