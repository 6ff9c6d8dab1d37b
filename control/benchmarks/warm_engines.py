"""What the warm pool is worth: seconds to an answer of real vLLM, with it and without it.

One `penstock serve` with `--warm 1` and one with `--warm 0` run by turns, each with an empty data
directory; the default model serves in both. Run it as
`PYTHONPATH=control .venv/bin/python -m benchmarks.warm_engines --rounds 10`.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from statistics import median
from typing import Any

import httpx
import psutil

PENSTOCK = Path(sys.executable).with_name("penstock")
MODEL = "penstock-mini"
PATIENCE = 120  # seconds until something has to be
Figures = dict[str, list[float]]


def main() -> None:
    """Measures, and prints one JSON object: median and values of each figure, in seconds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--serves", type=int, default=3, help="starts of `penstock serve` of each")
    args = parser.parse_args()
    figures: Figures = {}
    for _ in range(args.serves):
        for warm in (1, 0):
            with served(warm) as system:
                figures.setdefault(f"serve, --warm {warm}", []).append(system.took)
    for warm in (1, 0):
        with served(warm) as system:
            system.pool_filled()
            for _ in range(args.rounds):
                system.pool_filled()
                engine_lives(system, warm, figures)
            if warm:
                system.measured("kill -9 of the agent to a full pool", figures, without("node"))
                system.measured("kill -9 of the head to a full pool", figures, without("head"))
    found = {
        name: {"median": round(median(each), 2), "all": [round(one, 2) for one in each]}
        for name, each in figures.items()
    }
    sys.stdout.write(json.dumps(found, indent=2) + "\n")


class Served:
    """A `penstock serve` that answers."""

    def __init__(self, serve: subprocess.Popen[bytes], ports: list[int], data: Path) -> None:
        self.data, self.took = data, 0.0
        self._serve = psutil.Process(serve.pid)
        self._admin_url = f"http://127.0.0.1:{ports[1]}/admin/v1"
        self._clients = httpx.Client(
            base_url=f"http://127.0.0.1:{ports[0]}/v1", trust_env=False, timeout=PATIENCE
        )

    def admin(self, method: str, path: str, body: Any = None) -> Any:
        """The JSON that the admin API answers with."""
        token = {"authorization": f"Bearer {(self.data / 'admin.token').read_text().strip()}"}
        url = f"{self._admin_url}/{path}"
        with httpx.Client(trust_env=False, timeout=PATIENCE, headers=token) as client:
            reply = client.request(method, url, json=body).raise_for_status()
            return reply.json() if reply.content else None

    def answers(self, model: str = MODEL) -> bool:
        """Whether it answers a chat now."""
        messages = [{"role": "user", "content": "Hi"}]
        body = {"model": model, "max_tokens": 1, "messages": messages}
        return self._clients.post("/chat/completions", json=body).is_success

    def replicas(self, name: str) -> list[Any]:
        """Those of a deployment."""
        return [r for r in self.admin("GET", "replicas") if r["deployment"] == name]

    def process(self, role: str) -> psutil.Process:
        """Its head or its node agent."""
        found = (each for each in self._serve.children() if role in each.cmdline()[1:5])
        return next(found)

    def pool_filled(self) -> None:
        """Returns once as many members wait as are to; at once where there is no pool."""
        until(self._full, "a full pool")

    def _full(self) -> bool:
        (node,) = self.admin("GET", "nodes")
        pool, agent = node["warm_pool"], self.process("node").pid
        heard = node["state"] == "ready" and node["pid"] == agent
        return bool(heard and pool and pool["waiting"] == pool["target"])

    def measured(self, name: str, figures: Figures, what: Callable[[Served], float]) -> None:
        """Has it done with a full pool, and notes how long it took."""
        self.pool_filled()
        figures.setdefault(name, []).append(what(self))


def engine_lives(system: Served, warm: int, figures: Figures) -> None:
    """An engine is asked for and answers, is killed and answers anew, and is given back."""
    began = time.monotonic()
    engine = system.admin("POST", "engines", {"model": MODEL})
    name = engine["name"]
    until(lambda: system.answers(name), "an answer")
    answered = time.monotonic() - began
    figures.setdefault(f"engine to first answer, --warm {warm}", []).append(answered)
    system.pool_filled()
    took = _revived(system, name)
    figures.setdefault(f"kill -9 of the engine to answer, --warm {warm}", []).append(took)
    system.admin("DELETE", f"engines/{engine['id']}")


def _revived(system: Served, name: str) -> float:
    """Kills the replica; seconds until its model answers again out of another process."""
    (replica,) = system.replicas(name)
    began = time.monotonic()
    os.kill(replica["pid"], signal.SIGKILL)

    def answers_anew() -> bool:
        anew = (r["state"] == "ready" and r["pid"] != replica["pid"] for r in system.replicas(name))
        return any(anew) and system.answers(name)

    until(answers_anew, "another process of the replica")
    return time.monotonic() - began


def without(role: str) -> Callable[[Served], float]:
    """Kills the head or the agent; `penstock serve` starts another: seconds to a full pool."""

    def kill(system: Served) -> float:
        began = time.monotonic()
        process = system.process(role)
        process.kill()
        process.wait(PATIENCE)
        system.pool_filled()
        return time.monotonic() - began

    return kill


def until(probe: Callable[[], bool], what: str) -> None:
    """Returns when `probe` says so. Raises `TimeoutError`."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        with suppress(httpx.HTTPError, OSError, StopIteration):
            if probe():
                return
        time.sleep(0.02)
    raise TimeoutError(what)


@contextmanager
def served(warm: int) -> Iterator[Served]:
    """One `penstock serve` of the default model, from its start to its end."""
    with tempfile.TemporaryDirectory() as directory, ExitStack() as bound:
        sockets = [bound.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(3)]
        ports = [one.getsockname()[1] for one in sockets]
        bound.close()
        flags = zip(("--gateway", "--admin", "--rpc"), ports, strict=True)
        places = [word for flag, port in flags for word in (flag, f"127.0.0.1:{port}")]
        metrics = ["PENSTOCK_METRICS=", "PENSTOCK_HEAD_METRICS=", "PENSTOCK_NODE_METRICS="]
        options = ["--warm", str(warm), "--data-dir", directory]
        log = Path(directory, "serve.log")
        with log.open("wb") as output:
            began = time.monotonic()
            words = ["env", *metrics, str(PENSTOCK), "serve", *options, *places]
            serve = subprocess.Popen(words, stdout=output, stderr=output)
        try:
            system = Served(serve, ports, Path(directory))
            until(system.answers, "the first answer")
            system.took = time.monotonic() - began
            yield system
        finally:
            serve.send_signal(signal.SIGINT)
            serve.wait(timeout=PATIENCE)


if __name__ == "__main__":
    main()
