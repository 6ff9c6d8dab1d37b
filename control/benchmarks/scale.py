"""What a head costs at rest, and how fast a change reaches every gateway, at the size of a fleet.

A real head with a store on disk; node agents, replicas and gateways are simulated in this process,
over real gRPC. Every node sends a heartbeat each second, every gateway a report; the head pings the
replicas. Run it as `PYTHONPATH=control .venv/bin/python -m benchmarks.scale`;
`--help` lists the sizes.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from dataclasses import asdict
from pathlib import Path

import httpx
import psutil

from benchmarks.fleet import Fleet, Sizes, alias_of, filled_store, key_taken, limit_of

HEAD = """
import asyncio, sys
from pathlib import Path
from penstock.control.head import run_head
from penstock.control.settings import HeadSettings

data_dir = Path(sys.argv[1])
settings = HeadSettings(
    data_dir=data_dir, admin="127.0.0.1:0", rpc="127.0.0.1:0", run_gateway=False,
    log_level="warning", cluster_token_file=data_dir / "cluster.token",
)
sys.exit(asyncio.run(run_head(settings)))
"""
PATIENCE = 60  # seconds until the head is there and has heard everybody


def main() -> None:
    """Measures, and prints one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=100)
    parser.add_argument("--replicas", type=int, default=1000)
    parser.add_argument("--deployments", type=int, default=1000)
    parser.add_argument("--gateways", type=int, default=10)
    parser.add_argument("--tenants", type=int, default=1000, help="with two keys each")
    parser.add_argument("--adapters", type=int, default=1000, help="registered versions")
    parser.add_argument("--rest", type=float, default=20, help="seconds at rest that are measured")
    parser.add_argument("--changes", type=int, default=20)
    args = parser.parse_args()
    sizes = Sizes(
        args.nodes, args.replicas, args.deployments, args.gateways, args.tenants, args.adapters
    )
    with tempfile.TemporaryDirectory() as directory:
        found = asyncio.run(measured(Path(directory), sizes, args.rest, args.changes))
    sys.stdout.write(json.dumps(found, indent=2) + "\n")


async def measured(data_dir: Path, sizes: Sizes, rest: float, changes: int) -> dict[str, object]:
    """The figures of one run."""
    async with AsyncExitStack() as stack:
        fleet = Fleet(sizes)
        await fleet.serve(stack)
        await filled_store(data_dir / "penstock.db", fleet)
        head = await asyncio.create_subprocess_exec(sys.executable, "-c", HEAD, str(data_dir))
        stack.push_async_callback(head.wait)
        stack.callback(head.terminate)
        addresses = await announced(data_dir)
        token = (data_dir / "cluster.token").read_text().strip()
        tasks = await stack.enter_async_context(asyncio.TaskGroup())
        running = [tasks.create_task(each) for each in fleet.parts(addresses["rpc"], token)]
        await settled(fleet)
        process = psutil.Process(head.pid)
        share = await cpu_share(process, rest)
        before, began = cpu_seconds(process), time.monotonic()
        client = await stack.enter_async_context(asking(addresses["admin"], data_dir))
        answers, spreads = await spread(fleet, client, changes)
        at_rest = share * (time.monotonic() - began)
        of_changes = cpu_seconds(process) - before - at_rest
        lists = await listed(client, changes)
        keys = await spread_of_keys(fleet, client, changes)
        flips = await spread_of_aliases(fleet, client, changes)
        for task in running:
            task.cancel()
    return {
        "sizes": asdict(sizes),
        "cpu_share_of_one_core_at_rest": round(share, 3),
        "cpu_milliseconds_of_a_change": round(of_changes / changes * 1000, 1),
        "milliseconds_of_a_change_until_it_is_answered": summed_up(answers),
        "milliseconds_to_every_gateway": summed_up(spreads),
        "milliseconds_of_a_hundred_deployments": summed_up(lists),
        "milliseconds_of_a_key_to_every_gateway": summed_up(keys),
        "milliseconds_of_an_alias_to_every_gateway_after_the_answer": summed_up(flips),
    }


def summed_up(milliseconds: list[float]) -> dict[str, float]:
    """The middle and the worst."""
    return {"p50": round(statistics.median(milliseconds), 1), "max": round(max(milliseconds), 1)}


async def announced(data_dir: Path) -> dict[str, str]:
    """The addresses that the head listens on."""
    async with asyncio.timeout(PATIENCE):
        while True:
            try:
                found: dict[str, str] = json.loads((data_dir / "head.json").read_text())
                return found
            except (OSError, ValueError):
                await asyncio.sleep(0.05)


async def settled(fleet: Fleet) -> None:
    """Returns when every gateway routes to every replica, and a while later."""
    async with asyncio.timeout(PATIENCE):
        await fleet.every_gateway(lambda it: len(it.replicas) == fleet.sizes.replicas, None)
    await asyncio.sleep(5)


async def cpu_share(head: psutil.Process, seconds: float) -> float:
    """User and system time of the head, by wall time."""
    before, began = cpu_seconds(head), time.monotonic()
    await asyncio.sleep(seconds)
    return (cpu_seconds(head) - before) / (time.monotonic() - began)


def cpu_seconds(process: psutil.Process) -> float:
    """User and system time that it has had."""
    times = process.cpu_times()
    return float(times.user + times.system)


@contextmanager
def timed(found: list[float]) -> Iterator[None]:
    """Notes how many milliseconds the block takes."""
    began = time.monotonic()
    yield
    found.append((time.monotonic() - began) * 1000)


async def spread(
    fleet: Fleet, client: httpx.AsyncClient, changes: int
) -> tuple[list[float], list[float]]:
    """Milliseconds from asking for each change until it is answered, and until every gateway has
    it."""
    answered, found = list[float](), list[float]()
    for number in range(1, changes + 1):
        name = fleet.deployment_name(number)
        spec = (await client.get(f"/deployments/{name}")).json()["spec"]
        with timed(found):
            with timed(answered):
                reply = await client.put(
                    f"/deployments/{name}", json={**spec, "max_queued": number}
                )
                reply.raise_for_status()
            await fleet.every_gateway(limit_of(name, number))
        await asyncio.sleep(0.3)
    return answered, found


async def listed(client: httpx.AsyncClient, times: int) -> list[float]:
    """Milliseconds of a page of the list of deployments."""
    found = list[float]()
    for _ in range(times):
        with timed(found):
            (await client.get("/deployments", params={"limit": 100})).raise_for_status()
    return found


async def spread_of_keys(fleet: Fleet, client: httpx.AsyncClient, changes: int) -> list[float]:
    """Milliseconds from asking for each new key, and for its end, until every gateway knows."""
    found = list[float]()
    await client.put("/tenants/measured", json={})
    for _ in range(changes):
        with timed(found):
            made = (await client.post("/tenants/measured/keys")).json()
            digest = hashlib.sha256(made["key"].encode()).digest()
            await fleet.every_gateway(key_taken(digest, wanted=True))
        with timed(found):
            await client.delete(f"/tenants/measured/keys/{made['id']}")
            await fleet.every_gateway(key_taken(digest, wanted=False))
        await asyncio.sleep(0.3)
    return found


async def spread_of_aliases(fleet: Fleet, client: httpx.AsyncClient, changes: int) -> list[float]:
    """Milliseconds from the answer to each move of an alias until every gateway has it."""
    found = list[float]()
    path = f"/aliases/{fleet.deployment_name(0)}/moved"
    for number in range(changes):
        target = f"a@{number % 2}"
        (await client.put(path, json={"target": target})).raise_for_status()
        with timed(found):
            await fleet.every_gateway(alias_of("moved", target))
        await asyncio.sleep(0.3)
    return found


def asking(admin: str, data_dir: Path) -> httpx.AsyncClient:
    """A client of the admin API, as its first operator."""
    token = (data_dir / "admin.token").read_text().strip()
    return httpx.AsyncClient(
        base_url=f"http://{admin}/admin/v1",
        headers={"authorization": f"Bearer {token}"},
        trust_env=False,
        timeout=30,
    )


if __name__ == "__main__":
    main()
