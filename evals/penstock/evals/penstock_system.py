"""A whole Penstock, started by the command that users type."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx

from penstock.evals.account import open_account
from penstock.evals.admin_api import AdminApi
from penstock.evals.bench_plan import GATEWAY
from penstock.evals.endpoint import request
from penstock.evals.errors import EvalError
from penstock.evals.native import Target
from penstock.evals.processes import free_ports, running
from penstock.evals.scoring import BEHIND, FRONT

MODEL = "bench"
START_SECONDS = 180.0  # vLLM on a busy machine
STOP_SECONDS = 15.0
DOORS = ("gateway", "admin", "rpc", "gateway-metrics", "head-metrics", "node-metrics")


@dataclass(frozen=True, slots=True)
class System:
    """A running Penstock: what load is put on, and where operators look."""

    target: Target
    admin: AdminApi
    metrics_url: str  # of the gateway
    node_metrics_url: str  # of the replicas

    @property
    def url(self) -> str:
        """The gateway's address for clients."""
        return f"http://127.0.0.1:{self.target.port}"

    def keyed(self) -> Target:
        """The target as a tenant's client meets it: with a key, limits and scrapes."""
        key = open_account(self.admin, self.url)
        return replace(self.target, key=key, metrics_url=self.metrics_url)


@contextlib.contextmanager
def penstock(
    command: Sequence[str], engine: Sequence[str], folder: Path, *, replicas: int = 1
) -> Iterator[System]:
    """`penstock serve` on free ports, ready, while the block lasts; its data lies in `folder`.

    `engine`: options that say what is served, as `simulated` gives them; none: the default model.
    """
    ports = dict(zip(DOORS, free_ports(len(DOORS)), strict=True))
    whole = [*command, *engine, "--replicas", str(replicas), *_options(ports, folder)]
    with running("penstock", whole, folder, stop=signal.SIGINT, patience=STOP_SECONDS) as child:
        pids = child.wait_for(
            lambda: _ready_pids(ports, _admin(ports, folder), replicas),
            within=START_SECONDS,
            what="a gateway that lists the model, and ready replicas",
        )
        yield System(
            target=Target(GATEWAY, ports["gateway"], pids),
            admin=_admin(ports, folder),
            metrics_url=f"http://127.0.0.1:{ports['gateway-metrics']}/metrics",
            node_metrics_url=f"http://127.0.0.1:{ports['node-metrics']}/metrics",
        )


def simulated(engine_args: str) -> list[str]:
    """Options that serve the simulated engine with these settings."""
    return ["--engine", "simulated", "--engine-args", engine_args]


def _options(ports: Mapping[str, int], folder: Path) -> list[str]:
    doors = [word for door in DOORS for word in (f"--{door}", f"127.0.0.1:{ports[door]}")]
    return ["--name", MODEL, *doors, "--data-dir", str(folder / "data")]


def _admin(ports: Mapping[str, int], folder: Path) -> AdminApi:
    token = folder / "data" / "admin.token"
    return AdminApi(
        f"http://127.0.0.1:{ports['admin']}", token.read_text().strip() if token.exists() else ""
    )


def _ready_pids(ports: Mapping[str, int], admin: AdminApi, wanted: int) -> dict[str, int] | None:
    try:
        url = f"http://127.0.0.1:{ports['gateway']}/v1/models"
        models = request("GET", url, timeout=5)
        listed = models.raise_for_status().json()["data"]
        return pids_of(listed, admin.get("gateways"), admin.get("replicas"), wanted)
    except (OSError, httpx.HTTPError, EvalError):  # not yet
        return None


def pids_of(
    models: Sequence[Mapping[str, Any]],
    gateways: Sequence[Mapping[str, Any]],
    replicas: Sequence[Mapping[str, Any]],
    wanted: int = 1,
) -> dict[str, int] | None:
    """The processes to watch, once the gateway lists the model and so many replicas are ready."""
    serving = [each for each in replicas if each["state"] == "ready"]
    listed = any(each["id"] == MODEL for each in models)
    if not (listed and gateways and len(serving) >= wanted):
        return None
    return {FRONT: gateways[0]["pid"], BEHIND: serving[0]["pid"]}
