"""What `penstock serve` costs before anybody asks: seconds to ready, CPU, and each one's memory.

It is started on the simulated engine with an empty data directory, as often as asked; ready is the
first answer to a chat. Several commands are started by turns, so that a state of before can be held
beside this one. Run it as `PYTHONPATH=control .venv/bin/python -m benchmarks.start_cost`, with a
`--serve PATH/.venv/bin/penstock` for each checkout.
"""

from __future__ import annotations

import argparse
import json
import signal
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from statistics import median

import httpx
import psutil

PENSTOCK = Path(sys.executable).with_name("penstock")
PATIENCE = 60  # seconds until it serves
SETTLED = 3  # seconds from then until memory is read
ROLES = {"penstock-gateway": "gateway", "penstock.replica": "replica"}
MODULES = {"head": "head", "node": "agent"}  # `penstock head`, `penstock node`
Figures = dict[str, float]


def main() -> None:
    """Measures, and prints one JSON object of medians for each command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--serve", type=Path, action="append", help="this one; may be repeated")
    args = parser.parse_args()
    commands = args.serve or [PENSTOCK]
    runs: dict[str, list[Figures]] = {str(command): [] for command in commands}
    for _ in range(args.rounds):
        for command in commands:
            runs[str(command)].append(measured(command))
    found = {command: _medians(figures) for command, figures in runs.items()}
    sys.stdout.write(json.dumps(found, indent=2) + "\n")


def measured(command: Path) -> Figures:
    """One start: `ready_s`, `cpu_s` of all processes by then, MiB resident of each role's."""
    with tempfile.TemporaryDirectory() as directory, ExitStack() as bound:
        sockets = [bound.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(4)]
        gateway, admin, rpc, pages = (f"127.0.0.1:{one.getsockname()[1]}" for one in sockets)
        bound.close()
        options = ["--engine", "simulated", "--name", "sim", "--data-dir", directory]
        places = ["--gateway", gateway, "--admin", admin, "--rpc", rpc]
        # By variables, which have the same names in every state, unlike the options.
        metrics = [f"PENSTOCK_METRICS={pages}", "PENSTOCK_HEAD_METRICS=", "PENSTOCK_NODE_METRICS="]
        log = Path(directory, "serve.log")
        with log.open("wb") as output:
            began = time.monotonic()
            words = ["env", *metrics, str(command), "serve", *options, *places]
            serve = subprocess.Popen(words, stdout=output, stderr=output)
        try:
            _answered(f"http://{gateway}/v1/chat/completions", log)
            ready = {"ready_s": time.monotonic() - began, "cpu_s": _cpu(serve.pid)}
            time.sleep(SETTLED)
            return {**ready, **_resident(serve.pid)}
        finally:
            serve.send_signal(signal.SIGINT)
            serve.wait(timeout=PATIENCE)


def _answered(url: str, log: Path) -> None:
    """Returns with the first answer. Raises `TimeoutError` with what was logged."""
    asked = {"model": "sim", "max_tokens": 1, "messages": [{"role": "user", "content": "Hi"}]}
    deadline = time.monotonic() + PATIENCE
    with httpx.Client(trust_env=False) as client:
        while time.monotonic() < deadline:
            try:
                if client.post(url, json=asked).is_success:
                    return
            except httpx.TransportError:
                pass
            time.sleep(0.02)
    raise TimeoutError(log.read_text())


def _cpu(pid: int) -> float:
    serve = psutil.Process(pid)
    times = [one.cpu_times() for one in (serve, *serve.children(recursive=True))]
    return sum(one.user + one.system + one.children_user + one.children_system for one in times)


def _resident(pid: int) -> Figures:
    found = {"serve": psutil.Process(pid).memory_info().rss}
    for process in psutil.Process(pid).children(recursive=True):
        role = _role(process.cmdline())
        found[role] = found.get(role, 0) + process.memory_info().rss
    return {f"{role}_mib": size / 2**20 for role, size in found.items()}


def _role(words: list[str]) -> str:
    for said, role in ROLES.items():
        if any(said in word for word in words):
            return role
    return next((role for word, role in MODULES.items() if word in words), "other")


def _medians(runs: list[Figures]) -> Figures:
    return {name: round(median(run[name] for run in runs), 2) for name in runs[0]}


if __name__ == "__main__":
    main()
