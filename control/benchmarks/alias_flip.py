"""How soon a moved alias is what every gateway answers by: real head, gateways and replicas.

An alias goes back and forth between two versions. Each time its PUT returns, every gateway is asked
at once, over a connection that it has already: an answer from the version before is stale, and none
is to be. Run it as `PYTHONPATH=control .venv/bin/python -m benchmarks.alias_flip`; `--help` lists
the sizes.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx

PENSTOCK = Path(sys.executable).with_name("penstock")
GATEWAY = Path(__file__).parents[2] / "gateway_cpp" / "build" / "release" / "penstock-gateway"
SHIPPED = ("pirate", "json")  # adapters that come with Penstock, here those of a simulated engine
VERSION_HEADER = "x-penstock-adapter-version"
PATIENCE = 60  # seconds until all of them serve
GIVEN_UP = 5  # seconds from a move's return
PUT_LIMIT = 1000  # milliseconds after which the head answers though a gateway has not reported


def main() -> None:
    """Measures, and prints one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gateways", type=int, default=3)
    parser.add_argument("--replicas", type=int, default=2, help="simulated ones, of two slots")
    parser.add_argument("--moves", type=int, default=40)
    parser.add_argument("--gateway-binary", type=Path, default=GATEWAY)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        data_dir, ports = Path(directory), free_ports(args.gateways + 3)
        with started(data_dir, args.gateway_binary, ports, args.replicas):
            found = asyncio.run(measured(data_dir, ports, args.moves))
    sizes = {"gateways": args.gateways, "replicas": args.replicas, "moves": args.moves}
    sys.stdout.write(json.dumps({"sizes": sizes, **found}, indent=2) + "\n")


def free_ports(count: int) -> list[int]:
    """For the head's three, then one for each further gateway."""
    with ExitStack() as bound:
        return [
            bound.enter_context(socket.create_server(("127.0.0.1", 0))).getsockname()[1]
            for _ in range(count)
        ]


@contextmanager
def started(data_dir: Path, binary: Path, ports: Sequence[int], replicas: int) -> Iterator[None]:
    """`penstock serve` with its own gateway, and the others beside it."""
    admin, rpc, metrics, gateway, *others = (f"127.0.0.1:{port}" for port in ports)
    serve = [
        str(PENSTOCK), "serve", "--engine", "simulated", "--name", "sim",
        "--replicas", str(replicas), "--max-adapters", "2", "--log-level", "warning",
        "--engine-args", "ttft_ms=0 tokens_per_second=10000 answer_tokens=1",
        "--admin", admin, "--rpc", rpc, "--gateway-metrics", metrics, "--gateway", gateway,
        "--head-metrics", "", "--node-metrics", "", "--data-dir", str(data_dir),
        "--gateway-binary", str(binary),
    ]  # fmt: skip
    for name in SHIPPED:
        serve += ["--adapter", f"{name}={name}@1=penstock-mini/{name}"]
    token = data_dir / "cluster.token"
    with ExitStack() as stack:
        stack.enter_context(process(serve, signal.SIGINT))
        deadline = time.monotonic() + PATIENCE
        while not token.exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        for number, address in enumerate(others, start=2):
            command = [
                str(binary), "--control", rpc, "--listen", address, "--metrics", "",
                "--id", f"gw-{number}", "--cluster-token-file", str(token), "--threads", "1",
                "--log-level", "warning",
            ]  # fmt: skip
            stack.enter_context(process(command, signal.SIGTERM))
        yield


@contextmanager
def process(command: Sequence[str], end: signal.Signals) -> Iterator[None]:
    """One that runs for the block, silently, and is ended by this signal."""
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as running:
        try:
            yield
        finally:
            running.send_signal(end)


@dataclass
class Flips:
    """What was seen of all moves; times in milliseconds."""

    puts: list[float] = field(default_factory=list)
    visible: list[float] = field(default_factory=list)  # of each gateway, from a PUT's return
    stale: int = 0
    failed: int = 0


async def measured(data_dir: Path, ports: Sequence[int], moves: int) -> dict[str, object]:
    """The figures of one run."""
    admin_port, _, _, *gateway_ports = ports
    async with AsyncExitStack() as stack:
        gateways = [
            await stack.enter_async_context(client(f"http://127.0.0.1:{port}/v1"))
            for port in gateway_ports
        ]
        token = (data_dir / "admin.token").read_text().strip()
        admin = await stack.enter_async_context(
            client(f"http://127.0.0.1:{admin_port}/admin/v1", authorization=f"Bearer {token}")
        )
        await all_serve(gateways, admin)
        flips = Flips()
        for number in range(moves):
            await move(admin, gateways, f"{SHIPPED[number % 2]}@1", flips)
    return {
        "stale_answers": flips.stale,
        "failed_answers": flips.failed,
        "puts_at_their_limit": sum(each >= PUT_LIMIT for each in flips.puts),
        "milliseconds_of_a_put": summed_up(flips.puts),
        "milliseconds_from_its_return_to_the_right_answer_of_a_gateway": summed_up(flips.visible),
    }


def client(base_url: str, **headers: str) -> httpx.AsyncClient:
    """One that keeps its connections."""
    return httpx.AsyncClient(base_url=base_url, headers=headers, trust_env=False, timeout=30)


async def all_serve(gateways: Sequence[httpx.AsyncClient], admin: httpx.AsyncClient) -> None:
    """Returns when each gateway has answered from both versions, and the head hears each."""

    async def all_answer() -> bool:
        found = [
            await asked(gateway, f"sim:{name}@1") == f"{name}@1"
            for gateway in gateways
            for name in SHIPPED
        ]
        return all(found)

    async def all_are_heard() -> bool:
        reply = await admin.get("/gateways")
        observed = [each["id"] for each in reply.json() if each["snapshot_version"] > 0]
        return len(observed) == len(gateways)

    for look in (all_answer, all_are_heard):
        await until(look)


async def until(look: Callable[[], Awaitable[bool]]) -> None:
    """Returns when it is so."""
    async with asyncio.timeout(PATIENCE):
        while True:
            try:
                if await look():
                    return
            except httpx.TransportError:
                pass  # it does not listen yet
            await asyncio.sleep(0.1)


async def move(
    admin: httpx.AsyncClient, gateways: Sequence[httpx.AsyncClient], target: str, flips: Flips
) -> None:
    """Moves the alias, then asks each gateway until it answers from the target."""
    began = time.monotonic()
    reply = await admin.put("/aliases/sim/moved", json={"target": target})
    returned = time.monotonic()
    reply.raise_for_status()
    flips.puts.append((returned - began) * 1000)

    async def see(gateway: httpx.AsyncClient) -> None:
        while (version := await asked(gateway, "sim:moved")) != target:
            flips.stale += version in {f"{name}@1" for name in SHIPPED}
            flips.failed += not version
            if time.monotonic() > returned + GIVEN_UP:
                raise TimeoutError(f"{gateway.base_url} says {version!r} instead of {target}")
        flips.visible.append((time.monotonic() - returned) * 1000)

    async with asyncio.TaskGroup() as tasks:
        for gateway in gateways:
            tasks.create_task(see(gateway))


async def asked(gateway: httpx.AsyncClient, model: str) -> str:
    """The version that answered; empty where nobody did."""
    body = {"model": model, "prompt": "Hi", "max_tokens": 1}
    reply = await gateway.post("/completions", json=body)
    return reply.headers.get(VERSION_HEADER, "") if reply.status_code == httpx.codes.OK else ""


def summed_up(milliseconds: Sequence[float]) -> dict[str, float]:
    """The middle, the worst but one in a hundred, and the worst."""
    ordered = sorted(milliseconds)
    p50, p99 = (ordered[min(len(ordered) - 1, len(ordered) * of // 100)] for of in (50, 99))
    return {"p50": round(p50, 1), "p99": round(p99, 1), "max": round(ordered[-1], 1)}


if __name__ == "__main__":
    main()
