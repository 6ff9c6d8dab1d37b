"""A system with all that dashboards show, and faults in it, each of which has an alert."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import httpx
import pytest

from tests.e2e.adapter_traffic import made, register
from tests.e2e.canary_traffic import is_ready, started
from tests.e2e.fleet import Fleet, fleet_of
from tests.e2e.ladder_traffic import canned
from tests.e2e.loads import configure
from tests.e2e.rollouts import changed
from tests.e2e.system import System, eventually, running
from tests.fakes.nvml import nvml_in
from tests.fakes.ports import free_ports

FAULTS: Final = (
    "PenstockReplicaDead",
    "PenstockQueueFull",
    "PenstockBudgetGone",
    "PenstockUpdateFailed",
    "PenstockExplainDrops",
    "PenstockTraceDrops",
    "PenstockSloBurnFast",
    "PenstockSloBurnSlow",
)
"""What fires while `all_at_once` lasts. Those of the head itself are in test_head_alerts.py."""

PACE: Final = "tokens_per_second=200 ttft_ms=20 answer_tokens=8 max_running=64 per_request=1"
# A gateway that keeps next to nothing, and sends its traces to nobody.
FORGETFUL: Final = ("--explain-budget-bytes", "16384", "--trace-sample", "1")
Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Watched:
    """The system, its two gateways, and the keys of its tenants."""

    system: System
    fleet: Fleet
    keys: Mapping[str, str]  # "acme", and "bob", who may send one request a minute


def sampled(trace_id: str) -> dict[str, str]:
    """Headers of a request that is part of a trace which its client keeps."""
    return {"traceparent": f"00-{trace_id}-{'cd' * 8}-01"}


@contextmanager
def watched(folder: Path) -> Iterator[Watched]:
    """Simulated replicas on a machine with two accelerators; an adapter, a canary, a ladder,
    prices, objectives, tenants, a second gateway."""
    head, node = free_ports(2)
    options = ("--engine", "simulated", "--name", "sim", "--engine-args", PACE)
    metrics = ("--head-metrics", f"127.0.0.1:{head}", "--node-metrics", f"127.0.0.1:{node}")
    nvml_in(folder)
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("LD_LIBRARY_PATH", str(folder))
        with running(
            folder, *options, "--max-adapters", "2", *metrics, replicas=2, within=60
        ) as system:
            patched.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{free_ports(1)[0]}")
            with fleet_of(system, folder, 2, *FORGETFUL) as fleet:
                keys = {
                    "acme": fleet.new_key(tokens_per_day=10**9),
                    "bob": fleet.new_key(requests_per_minute=1),
                }
                _deployments(system, folder)
                yield Watched(system, fleet, keys)


def _deployments(system: System, folder: Path) -> None:
    """`narrow`: one slow request at a time, and a text for others; `once`: asked once by a test;
    `next`: the candidate beside `sim`."""
    engine = {"engine": "simulated", "model": "penstock-mini"}
    args = dict(each.split("=") for each in PACE.split())
    slow = args | {"tokens_per_second": "20"}
    for name, its in (("narrow", slow), ("once", args), ("next", args)):
        system.change("POST", "deployments", {"name": name, **engine, "engine_args": its})
    canned(system, "canned")
    for name in ("narrow", "once", "next"):
        is_ready(system, name)
    narrow = {"max_ongoing": 1, "max_queued": 1, "degrade": ["fallback:canned"]}
    system.change("PATCH", "deployments/narrow/settings", narrow)
    configure(system, usd_per_million_output=2.0)
    register(system, "sim", "a@1", made(folder, "a@1"))
    started(system, "move", target="sim", candidate="next")


@contextmanager
def all_at_once(watched: Watched) -> Iterator[None]:
    """Every fault of `FAULTS`, under traffic of all kinds."""
    system = watched.system
    _send(watched, {"model": "once"})
    configure(system, slo={"ttft_p50_ms": 1, "error_rate": 0.5})
    system.change("PATCH", "deployments/once/settings", {"budget_tokens_per_day": 1})
    eventually(lambda: _serves(system, "narrow"), within=30, what="narrow has what to go back to")
    changed(system, "narrow", engine_args={"fail_adapter_loads": "2"})
    with _traffic(watched.fleet.ports, list(_crowd(watched.keys))):
        # A replica dies of it, and so does the one that goes on with its answer: it has failed.
        fatal = {"model": "sim", "max_tokens": 40, "simulate": {"die_after_tokens": 4}}
        _send(watched, fatal | {"stream": True})
        yield
    system.change("PATCH", "deployments/once/settings", {"budget_tokens_per_day": 0})
    configure(system, slo={"ttft_p50_ms": 60_000, "error_rate": 0.5})


def _serves(system: System, name: str) -> bool:
    rollout = system.admin(f"deployments/{name}")["status"]["rollout"]
    return bool(rollout["state"] == "served")


def in_calm(watched: Watched) -> AbstractContextManager[None]:
    """Traffic without any fault, of which requests that are good again come."""
    good = {"model": "sim", "key": watched.keys["acme"], "stream": True}
    return _traffic([watched.system.gateway_port], [good] * 3)


@contextmanager
def _traffic(ports: Sequence[int], bodies: Sequence[Json]) -> Iterator[None]:
    """A client for each of these at each gateway, again and again."""
    stop = threading.Event()
    clients = [
        threading.Thread(target=_until, args=(stop, port, body))
        for port in ports
        for body in bodies
    ]
    for client in clients:
        client.start()
    try:
        yield
    finally:
        stop.set()
        for client in clients:
            client.join(timeout=30)


def _crowd(keys: Mapping[str, str]) -> Iterator[Json]:
    """What clients send again and again."""
    yield {"model": "sim", "key": keys["acme"], "stream": True}
    yield {"model": "sim:a@1", "key": keys["acme"]}
    yield {"model": "sim", "key": keys["bob"]}
    for _ in range(3):
        yield {"model": "narrow", "key": keys["acme"]}


def _send(watched: Watched, body: Json) -> None:
    """One request of acme."""
    with httpx.Client(trust_env=False, timeout=30) as client:
        _ask(client, watched.fleet.ports[0], body | {"key": watched.keys["acme"]})


def _until(stop: threading.Event, port: int, body: Json) -> None:
    with httpx.Client(trust_env=False, timeout=30) as client:
        while not stop.wait(0.2):
            _ask(client, port, body)


def _ask(client: httpx.Client, port: int, body: Json) -> None:
    """Whatever comes of it."""
    said = {name: value for name, value in body.items() if name != "key"}
    said["messages"] = [{"role": "user", "content": "What is a gateway?"}]
    headers = {"authorization": f"Bearer {body['key']}", **sampled("ee" * 16)}
    try:
        client.post(f"http://127.0.0.1:{port}/v1/chat/completions", json=said, headers=headers)
    except httpx.TransportError:
        return
