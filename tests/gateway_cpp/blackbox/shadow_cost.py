"""What shadows cost the gateway, in instructions for each of its clients' requests.

    python -m tests.gateway_cpp.blackbox.shadow_cost [--before OTHER_GATEWAY] [--rounds 3]

valgrind counts all instructions of the process but the kernel's, those that hand pairs over
included: on any machine, beside any other work. The fakes answer, for their time does not count.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import re
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from penstock.v1 import routes_pb2 as routes
from tests.fakes.fake_comparer import FakeComparer
from tests.fakes.fake_control import FakeControl, deployment, route
from tests.fakes.fake_replica import DONE, FakeCall, FakeReplica, Script, delta, last_delta
from tests.fakes.fake_replica import hello as unary
from tests.fakes.gateway_process import GatewayProcess, binary
from tests.fakes.waiting import until
from tests.gateway_cpp.blackbox.raw_http import RawClient, chat
from tests.gateway_cpp.blackbox.shadowed import rule

CLIENTS = 64
EVENTS = 20  # of a stream
PACE_S = 0.05
MANY = 100_000  # copies at once: none is left out


async def paced(call: FakeCall) -> None:
    """A stream whose events come one by one, as engines make them."""
    for _ in range(EVENTS):
        await call.send(delta("word "), tokens=1)
        await asyncio.sleep(PACE_S)
    await call.send(last_delta() + DONE, events=2)
    await call.finish()


@dataclass(frozen=True, slots=True)
class Scenario:
    """Requests of one kind."""

    script: Script
    request: bytes
    each: int  # requests of a client that are counted


SCENARIOS = {
    "unary": Scenario(unary, chat(max_tokens=1), each=20),
    "stream of 20 events": Scenario(paced, chat(stream=True), each=3),
}
SHADOWS: dict[str, list[routes.ShadowRule]] = {
    "no rule": [],
    "a rule that samples nothing": [rule(tenants=["nobody"], max_concurrent=MANY)],
    "100 %": [rule(max_concurrent=MANY)],
}


def counted(folder: Path, pid: int) -> int:
    """Instructions since this was asked last."""
    before = set(folder.glob("callgrind.out.*"))
    subprocess.run(["callgrind_control", "--dump", str(pid)], check=True, capture_output=True)
    (dump,) = set(folder.glob("callgrind.out.*")) - before
    found = re.search(r"^(?:totals|summary): (\d+)", dump.read_text(), re.MULTILINE)
    assert found is not None, f"{dump} has no sum"
    return int(found.group(1))


async def is_ready(port: int, scenario: Scenario) -> None:
    """Waits until replicas are reached: all is slow here."""
    while True:
        async with RawClient(port) as link:
            if (await link.ask(scenario.request)).status == 200:
                return
        await asyncio.sleep(0.5)


async def ask(port: int, scenario: Scenario, each: int) -> None:
    """All clients at once, each one request after the other."""

    async def client() -> None:
        async with RawClient(port) as link:
            for _ in range(each):
                answer = await link.ask(scenario.request)
                assert answer.status == 200, answer

    async with asyncio.TaskGroup() as group:
        for _ in range(CLIENTS):
            group.create_task(client())


def under_valgrind(gateway: Path, folder: Path) -> Path:
    """What starts it so that what is counted comes to `folder`."""
    script = folder / "gateway"
    out = f"--callgrind-out-file={folder}/callgrind.out.%p --log-file={folder}/valgrind.log"
    script.write_text(f'#!/bin/sh\nexec valgrind --tool=callgrind {out} "{gateway}" "$@"\n')
    script.chmod(0o755)
    return script


async def cost(
    gateway: Path, scenario: Scenario, shadows: list[routes.ShadowRule], *more: str
) -> float:
    """Instructions of one request; `more`: flags of the gateway."""
    async with contextlib.AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        control = await stack.enter_async_context(FakeControl())
        comparer = await stack.enter_async_context(FakeComparer())
        mini = await stack.enter_async_context(FakeReplica("r1", scenario.script))
        other = await stack.enter_async_context(FakeReplica("r2", scenario.script))
        version = await control.publish(
            [deployment(), deployment("next")],
            [route(mini), route(other, of="next")],
            shadows=shadows,
            comparer_address=comparer.address,
        )
        os.environ["PENSTOCK_GATEWAY"] = str(under_valgrind(gateway, folder))
        flags = ("--control", control.address, "--id", "gw-1", "--data-dir", str(folder))
        process = GatewayProcess(folder, *flags, *more, "--threads", "1")
        await stack.enter_async_context(process)
        await process.start()
        await until(
            lambda: process.find_log("routes replaced", version=version),
            "it has routes",
            seconds=300,
        )
        await is_ready(process.port, scenario)
        sums = []
        for each in (1, 1, 1 + scenario.each):
            before = len(comparer.pairs)
            await ask(process.port, scenario, each)
            if any(rule.share_permille and not rule.tenants for rule in shadows):
                wanted = before + CLIENTS * each
                await until(lambda: len(comparer.pairs) >= wanted, "all pairs", seconds=120)  # noqa: B023
            sums.append(await asyncio.to_thread(counted, folder, process.pid))
        return (sums[2] - sums[1]) / (CLIENTS * scenario.each)


async def compare(before: Path | None, rounds: int) -> None:
    """Prints a table."""
    ours = binary()
    for name, scenario in SCENARIOS.items():
        ways = {title: (ours, shadows) for title, shadows in SHADOWS.items()}
        if before is not None:
            ways = {"before": (before, [])} | ways
        found: dict[str, list[float]] = {title: [] for title in ways}
        for _ in range(rounds):
            for title, (gateway, shadows) in ways.items():
                found[title].append(await cost(gateway, scenario, shadows))
        base = statistics.median(next(iter(found.values())))
        for title, costs in found.items():
            middle = statistics.median(costs)
            sys.stdout.write(
                f"{name:20} {title:28} {middle:10,.0f} {middle / base:6.3f}  "
                f"{min(costs):,.0f} to {max(costs):,.0f}\n"
            )


def main() -> None:
    """As the command line says."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--before", type=Path, help="a gateway that knows no shadows")
    parser.add_argument("--rounds", type=int, default=3)
    told = parser.parse_args()
    asyncio.run(compare(told.before, told.rounds))


if __name__ == "__main__":
    main()
