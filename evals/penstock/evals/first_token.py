"""Time to the first token of a real model: through the whole of Penstock, and in its engine alone.

The engine alone is timed by a command (`python -m penstock.replica.probe`), which starts the same
engine in one process and calls it with neither gRPC nor gateway. What the gateway, gRPC and the
replica's queues add is the difference of the two medians. The two run one after the other, never
at once, since they would share the cores.
"""

from __future__ import annotations

import http.client
import json
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from penstock.evals.client import CHAT_PATH
from penstock.evals.errors import EvalError
from penstock.evals.penstock_system import MODEL, penstock
from penstock.evals.scoring import quantile

PROMPT = "What is a gateway?"
MAX_TOKENS = 8
WARM_UP = 10  # requests that are not counted


@dataclass(frozen=True, slots=True)
class FirstToken:
    """Milliseconds to the first event of sequential requests, sorted."""

    through: tuple[float, ...]
    alone: tuple[float, ...]

    def as_markdown(self) -> str:
        """Both, and what lies between their medians."""
        added = quantile(self.through, 0.5) - quantile(self.alone, 0.5)
        rows = [("through the gateway", self.through), ("engine alone", self.alone)]
        lines = ["| first token, ms | requests | p50 | p90 | p99 |", "|---|---|---|---|---|"]
        for name, taken in rows:
            figures = " | ".join(f"{quantile(taken, q):.2f}" for q in (0.5, 0.9, 0.99))
            lines.append(f"| {name} | {len(taken)} | {figures} |")
        return "\n".join([*lines, "", f"Added at the median: {added:.2f} ms."])


def measure(serve: Sequence[str], probe: Sequence[str], requests: int, folder: Path) -> FirstToken:
    """Times `requests` each way. Raises `EvalError` when something does not start or answer."""
    folder.mkdir(parents=True, exist_ok=True)
    with penstock(serve, (), folder) as system:
        connection = http.client.HTTPConnection("127.0.0.1", system.target.port, timeout=60)
        taken = [first_event_ms(connection) for _ in range(requests + WARM_UP)]
        connection.close()
    return FirstToken(tuple(sorted(taken[WARM_UP:])), engine_alone(probe, requests))


def first_event_ms(connection: http.client.HTTPConnection) -> float:
    """Milliseconds from sending a streamed request to its first bytes; reads the rest as well."""
    body = {
        "model": MODEL,
        "stream": True,
        "temperature": 0,
        "max_tokens": MAX_TOKENS,
        "messages": [{"role": "user", "content": PROMPT}],
    }
    payload = json.dumps(body)
    began = time.perf_counter()
    connection.request("POST", CHAT_PATH, payload, {"content-type": "application/json"})
    reply = connection.getresponse()
    first = reply.read1(65536)
    taken = (time.perf_counter() - began) * 1000
    if reply.status != 200 or not (first + reply.read()).endswith(b"data: [DONE]\n\n"):
        raise EvalError(f"the gateway answered {reply.status}: {first[:300]!r}")
    return taken


def engine_alone(probe: Sequence[str], requests: int) -> tuple[float, ...]:
    """What the probe's command prints as "ttft_ms". Raises `EvalError` when it fails."""
    options = ["--requests", str(requests), "--prompt", PROMPT, "--max-tokens", str(MAX_TOKENS)]
    done = subprocess.run([*probe, *options], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise EvalError(f"{probe[-1]} ended with {done.returncode}: {done.stderr[-500:]}")
    return tuple(json.loads(done.stdout.splitlines()[-1])["ttft_ms"])
