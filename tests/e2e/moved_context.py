"""Deployments whose engines move KV between them, and what a client sees of it."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from tests.e2e.system import System, eventually
from tests.fakes.ports import free_ports

Json = dict[str, Any]
MODEL = "chat"
PROGRAMS = (
    "data_parallel",
    "prefill_decode",
    "cache_aware_prefill_decode",
    "balanced_prefill_decode",
    "context_migration",
)
SHIPPED = Path(__file__).parents[2] / "control/penstock/control/router/programs"
_NAMED: Json = {
    "name": MODEL,
    "microserving": "on",
    "program_deadline_ms": 2000,  # the machine is busy
}


class Up(System):
    """One `penstock up` of a file."""

    verb = "up"


@contextmanager
def up(folder: Path, *, within: float, **fields: Any) -> Iterator[System]:
    """A deployment `chat` with these fields, all its replicas ready; must stop cleanly."""
    file = folder / "penstock.yaml"
    head = {"penstock": "v1", "kind": "deployment", **_NAMED, **fields}
    file.write_text(json.dumps(head) + "\n")
    (port,) = free_ports(1)
    system = Up(folder, "-f", str(file), "--node-metrics", f"127.0.0.1:{port}")
    try:
        system.wait_ready(fields["replicas"], within=within)
        yield system
        system.stop()
    finally:
        system.destroy()


@contextmanager
def beside(system: System, **fields: Any) -> Iterator[None]:
    """The same beside what a system serves, for as long as the block takes."""
    system.change("POST", "deployments", _NAMED | fields)

    def ready() -> bool:
        return len(_replicas(system)) == int(fields["replicas"])

    eventually(ready, within=170, what=f"all replicas of {MODEL}")
    yield
    system.change("DELETE", f"deployments/{MODEL}")


def _replicas(system: System) -> list[Json]:
    return [each for each in system.replicas() if each["deployment"] == MODEL]


def sets(system: System, **settings: Any) -> None:
    """Changes settings of the deployment."""
    system.change("PATCH", f"deployments/{MODEL}/settings", settings)


def switched(system: System, name: str, **args: Any) -> None:
    """Has another program that ships route; returns when requests are decided by it."""
    _set(system, (SHIPPED / f"{name}.py").read_text(), name=name, args=args)


def runs(system: System, text: str) -> None:
    """Likewise, a program of one's own."""
    _set(system, text, file=text)


def _set(system: System, text: str, **program: Any) -> None:
    sets(system, selection_policy="program", program=program)
    digest = hashlib.sha256(text.encode()).hexdigest()

    def decides() -> bool:
        gateways = system.admin(f"deployments/{MODEL}")["status"]["program"]["gateways"]
        return any(each["digest"] == digest for each in gateways) and _decides(system)

    eventually(decides, within=20, what=f"decisions by {program}")


def _decides(system: System) -> bool:
    before = decided(system)
    ask(system, "Are you there?", max_tokens=1)
    return decided(system) > before


def decided(system: System) -> float:
    """Requests that programs have decided so far, as the gateway counts them."""
    return total(system, "penstock_gateway_program_asks_total", 'outcome="decided"')


def total(system: System, name: str, label: str = "") -> float:
    """The sum of a metric of the gateway over the series that have this label."""
    text = httpx.get(f"http://127.0.0.1:{system.metrics_port}/metrics", trust_env=False).text
    lines = (line for line in text.splitlines() if line.startswith(name) and label in line)
    return sum(float(line.rsplit(" ", 1)[1]) for line in lines)


@dataclass(frozen=True)
class Said:
    """An answer, as its client got it."""

    text: str
    finish: str
    prompt: int  # tokens
    cached: int
    moved: int


def ask(
    system: System, prompt: str, *, model: str = MODEL, client: str = "", **fields: Any
) -> Said:
    """A whole answer, greedy where nothing else is said. Fails unless it is one. `client`: what its
    client calls the request."""
    body = {"temperature": 0, "max_tokens": 24, **fields}
    body |= {"model": model, "messages": [{"role": "user", "content": prompt}]}
    url = f"{system.base_url}/chat/completions"
    headers = {"x-client-request-id": client} if client else {}
    reply = httpx.post(url, json=body, headers=headers, trust_env=False, timeout=60)
    assert reply.status_code == 200, reply.text
    return said(reply.json(), reply.headers)


def said(told: Json, headers: Mapping[str, str]) -> Said:
    """What a unary answer says."""
    choice, usage = told["choices"][0], told["usage"]
    cached = (usage.get("prompt_tokens_details") or {}).get("cached_tokens") or 0
    moved = int(headers.get("x-penstock-kv-moved", 0))
    text = choice["message"]["content"]
    return Said(text, choice["finish_reason"], usage["prompt_tokens"], cached, moved)


def at_rest(system: System) -> None:
    """Returns when no replica has a lease, a transfer or a block in use; fails if one keeps any."""
    names = "kv_blocks_used|calls|microserving_leases|microserving_transfers"
    wanted = re.compile(rf'^penstock_replica_(?:{names}){{.*deployment="{MODEL}".* (\S+)$', re.M)

    def is_free() -> bool:
        found = wanted.findall(_node_page(system))
        assert len(found) >= 4 * len(_replicas(system)) > 0, found
        return not any(float(value) for value in found)

    eventually(is_free, within=60, what="replicas that have given everything back")


def _node_page(system: System) -> str:
    """What the node and its replicas tell Prometheus."""
    where = system.options[system.options.index("--node-metrics") + 1]
    return httpx.get(f"http://{where}/metrics", trust_env=False, timeout=10).text
