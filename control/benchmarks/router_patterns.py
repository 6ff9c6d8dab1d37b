"""What router programs cost and give: time to the first token, per token and for a whole answer.

`patterns` has real vLLM engines of the default model answer prompts of 100 to 1,500 tokens under
each program that ships, by turns; `overhead` has a simulated engine answer one token, by turns
through `power_of_two` and through the program `data_parallel`. Run it as
`PYTHONPATH=control .venv/bin/python -m benchmarks.router_patterns patterns --engines 2`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, quantiles
from typing import Any

import httpx

PENSTOCK = Path(sys.executable).with_name("penstock")
MODEL, PATIENCE, TOKENS = "chat", 240, 32
PATTERNS: dict[str, dict[str, Any]] = {
    "power_of_two": {},
    "data_parallel": {},
    "prefill_decode": {},
    "cache_aware_prefill_decode": {},
    "balanced_prefill_decode": {"pd_balance_factor": 0.1},
}


@dataclass(frozen=True, slots=True)
class Answer:
    """Seconds of one request: to its first token, for each later one, to its end."""

    first: float
    later: float
    whole: float
    moved: int  # tokens


class Served:
    """A `penstock up` of one deployment that answers."""

    def __init__(self, ports: Sequence[int], data: Path) -> None:
        self._admin = f"http://127.0.0.1:{ports[1]}/admin/v1"
        self._data = data
        self.base_url = f"http://127.0.0.1:{ports[0]}/v1"
        self.metrics = f"http://127.0.0.1:{ports[3]}/metrics"

    def admin(self, method: str, path: str, body: Any = None) -> Any:
        """The JSON that the admin API answers with."""
        token = {"authorization": f"Bearer {(self._data / 'admin.token').read_text().strip()}"}
        with httpx.Client(trust_env=False, timeout=PATIENCE, headers=token) as client:
            reply = client.request(method, f"{self._admin}/{path}", json=body).raise_for_status()
            return reply.json() if reply.content else None

    def ready(self) -> bool:
        """Whether all replicas are."""
        try:
            found = self.admin("GET", "replicas")
        except (httpx.HTTPError, OSError):
            return False
        return bool(found) and all(each["state"] == "ready" for each in found)

    def routes_by(self, pattern: str) -> None:
        """Has new requests go by a pattern; returns when they do."""
        by_program = {"selection_policy": "program"}
        by_program |= {"program": {"name": pattern, "args": PATTERNS[pattern]}}  # type: ignore[dict-item]
        plain = pattern == "power_of_two"
        settings = {"selection_policy": pattern} if plain else by_program
        self.admin("PATCH", f"deployments/{MODEL}/settings", settings)
        before, deadline = self.decided(), time.monotonic() + PATIENCE
        while not plain and self.decided() == before and time.monotonic() < deadline:
            asyncio.run(_asked(self, ["Hello"], 1))
        if plain:
            asyncio.run(_asked(self, ["Hello"] * 20, 1))

    def decided(self) -> float:
        """Requests that programs have decided so far."""
        name = "penstock_gateway_program_asks_total"
        lines = httpx.get(self.metrics, trust_env=False).text.splitlines()
        found = (line for line in lines if line.startswith(name) and "decided" in line)
        return sum(float(line.rsplit(" ", 1)[1]) for line in found)


@contextmanager
def served(spec: dict[str, Any]) -> Iterator[Served]:
    """One `penstock up` of this deployment, from its start to its end."""
    with tempfile.TemporaryDirectory() as directory, ExitStack() as bound:
        sockets = [bound.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(4)]
        ports = [one.getsockname()[1] for one in sockets]
        bound.close()
        flags = zip(("--gateway", "--admin", "--rpc", "--gateway-metrics"), ports, strict=True)
        places = [word for flag, port in flags for word in (flag, f"127.0.0.1:{port}")]
        file = Path(directory, "penstock.yaml")
        file.write_text(json.dumps({"penstock": "v1", "kind": "deployment", "name": MODEL} | spec))
        words = [str(PENSTOCK), "up", "-f", str(file), "--warm", "0", "--data-dir", directory]
        with Path(directory, "up.log").open("wb") as log:
            process = subprocess.Popen([*words, *places], stdout=log, stderr=log)
        try:
            system = Served(ports, Path(directory))
            deadline = time.monotonic() + PATIENCE
            while not system.ready():
                assert time.monotonic() < deadline, Path(directory, "up.log").read_text()
                time.sleep(0.1)
            yield system
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(timeout=PATIENCE)


async def _ask(client: httpx.AsyncClient, prompt: str, tokens: int) -> Answer:
    body = {"model": MODEL, "prompt": prompt, "max_tokens": tokens, "temperature": 0}
    body |= {"stream": True, "ignore_eos": True}
    began = time.monotonic()
    times = []
    async with client.stream("POST", "completions", json=body) as reply:
        assert reply.status_code == 200, await reply.aread()
        async for line in reply.aiter_lines():
            if line.startswith("data: {"):
                times.append(time.monotonic() - began)
    moved = int(reply.headers.get("x-penstock-kv-moved", 0))
    later = (times[-1] - times[0]) / max(1, tokens - 1)
    return Answer(times[0], later, times[-1], moved)


async def _asked(
    system: Served, prompts: Sequence[str], tokens: int, rate: float = 0
) -> list[Answer]:
    """The answers: one after the other, or at so many a second as chance has it."""
    async with httpx.AsyncClient(
        base_url=system.base_url, trust_env=False, timeout=PATIENCE
    ) as client:
        if not rate:
            return [await _ask(client, prompt, tokens) for prompt in prompts]
        chance, tasks = random.Random(1), []
        async with asyncio.TaskGroup() as group:
            for prompt in prompts:
                tasks.append(group.create_task(_ask(client, prompt, tokens)))
                await asyncio.sleep(chance.expovariate(rate))
        return [task.result() for task in tasks]


def _prompts(seed: int, count: int) -> list[str]:
    """Prompts of 100 to 1,500 tokens of the default model that begin alike nowhere."""
    chance = random.Random(seed)
    words = ("river", "stone", "cloud", "ember", "winter", "garden", "mirror", "copper", "lantern")
    lengths = [round(100 + 1400 * n / max(1, count - 1)) for n in range(count)]
    chance.shuffle(lengths)
    return [
        f"{seed}-{n} " + " ".join(chance.choices(words, k=length // TOKENS_A_WORD))
        for n, length in enumerate(lengths)
    ]


TOKENS_A_WORD = 2  # of the default model's tokenizer, about


def _figures(answers: Sequence[Answer]) -> dict[str, float]:
    """Milliseconds: mean and 99th percentile of each time."""
    found: dict[str, float] = {}
    for name in ("first", "later", "whole"):
        values = [1000 * getattr(each, name) for each in answers]
        found[f"{name} mean"] = round(mean(values), 2)
        found[f"{name} p99"] = round(quantiles(values, n=100)[98], 2)
    return found | {"tokens moved": sum(each.moved for each in answers)}


def patterns(engines: int, rounds: int, count: int, rate: float) -> dict[str, Any]:
    """The figures of each pattern over all rounds."""
    roles = {"prefill": 1, "decode": engines - 1}
    spec = {"model": "penstock-mini", "replicas": engines, "microserving": "on", "roles": roles}
    answers: dict[str, list[Answer]] = {name: [] for name in PATTERNS}
    with served(spec) as system:
        for number in range(rounds):
            for index, name in enumerate(PATTERNS):
                system.routes_by(name)
                prompts = _prompts(100 * number + index, count)
                answers[name] += asyncio.run(_asked(system, prompts, TOKENS, rate))
    return {name: _figures(each) for name, each in answers.items()}


def overhead(rounds: int, count: int) -> dict[str, Any]:
    """Milliseconds to the end of a one-token answer, median: without a program and with one."""
    args = {"tokens_per_second": 0, "ttft_ms": 0}
    spec = {"engine": "simulated", "model": "m", "engine_args": args, "replicas": 2}
    took: dict[str, list[float]] = {"power_of_two": [], "data_parallel": []}
    with served(spec | {"microserving": "on"}) as system:
        for _ in range(rounds):
            for name, values in took.items():
                system.routes_by(name)
                answers = asyncio.run(_asked(system, ["Hi"] * count, 1))
                values.append(1000 * sorted(each.whole for each in answers)[count // 2])
    return {name: [round(value, 3) for value in values] for name, values in took.items()}


def main() -> None:
    """Measures, and prints one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("patterns", "overhead"))
    parser.add_argument("--engines", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--count", type=int, default=40, help="requests of a pattern in a round")
    parser.add_argument("--rate", type=float, default=2, help="requests a second")
    args = parser.parse_args()
    if args.what == "patterns":
        found = patterns(args.engines, args.rounds, args.count, args.rate)
    else:
        found = overhead(args.rounds, args.count)
    sys.stdout.write(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
