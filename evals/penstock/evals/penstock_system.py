"""A whole Penstock, started by the command that users type."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import httpx

from penstock.evals.bench_plan import GATEWAY
from penstock.evals.native import Target
from penstock.evals.processes import free_ports, running
from penstock.evals.scoring import BEHIND, FRONT

MODEL = "bench"
START_SECONDS = 180.0  # vLLM on a busy machine
STOP_SECONDS = 15.0


@contextlib.contextmanager
def penstock(command: Sequence[str], engine: Sequence[str], folder: Path) -> Iterator[Target]:
    """`penstock serve` on free ports, ready, while the block lasts; its data lies in `folder`.

    `engine`: options that say what is served, as `simulated` gives them; none: the default model.
    """
    gateway, admin, rpc, metrics = free_ports(4)
    whole = [*command, *engine, *_options(gateway, admin, rpc, metrics, folder)]
    with running("penstock", whole, folder, stop=signal.SIGINT, patience=STOP_SECONDS) as child:
        pids = child.wait_for(
            lambda: _ready_pids(gateway, admin, folder / "data" / "admin.token"),
            within=START_SECONDS,
            what="a gateway that lists the model, and a ready replica",
        )
        yield Target(GATEWAY, gateway, pids)


def simulated(engine_args: str) -> list[str]:
    """Options that serve the simulated engine with these settings."""
    return ["--engine", "simulated", "--engine-args", engine_args]


def _options(gateway: int, admin: int, rpc: int, metrics: int, folder: Path) -> list[str]:
    return [
        *("--name", MODEL, "--gateway", f"127.0.0.1:{gateway}", "--admin", f"127.0.0.1:{admin}"),
        *("--rpc", f"127.0.0.1:{rpc}", "--metrics", f"127.0.0.1:{metrics}"),
        *("--data-dir", str(folder / "data")),
    ]


def _ready_pids(gateway: int, admin: int, token_file: Path) -> dict[str, int] | None:
    try:
        token = token_file.read_text().strip()
        models = _get(f"http://127.0.0.1:{gateway}/v1/models")["data"]
        gateways = _get(f"http://127.0.0.1:{admin}/admin/v1/gateways", token)
        replicas = _get(f"http://127.0.0.1:{admin}/admin/v1/replicas", token)
    except (OSError, httpx.HTTPError):  # not yet
        return None
    return pids_of(models, gateways, replicas)


def pids_of(
    models: Sequence[Mapping[str, Any]],
    gateways: Sequence[Mapping[str, Any]],
    replicas: Sequence[Mapping[str, Any]],
) -> dict[str, int] | None:
    """The processes to watch, once the gateway lists the model and a replica is ready."""
    serving = [each for each in replicas if each["state"] == "ready"]
    listed = any(each["id"] == MODEL for each in models)
    if not (listed and gateways and serving):
        return None
    return {FRONT: gateways[0]["pid"], BEHIND: serving[0]["pid"]}


def _get(url: str, token: str = "") -> Any:
    headers = {"authorization": f"Bearer {token}"} if token else {}
    reply = httpx.get(url, headers=headers, timeout=5, trust_env=False)
    return reply.raise_for_status().json()


__all__ = ["MODEL", "penstock", "pids_of", "simulated"]
