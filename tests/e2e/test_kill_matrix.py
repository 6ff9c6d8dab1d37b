"""Each process is killed, stopped for a while and told to end under a steady flow of requests.

CI runs the cells that no other test finds; `make test-long ONLY=kill_matrix` all of them, with one
gateway and with two.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import pytest

from tests.e2e.fleet import Fleet, fleet_of
from tests.e2e.flow import STREAMING, WHOLE, Ended, Flow, flowing
from tests.e2e.kill_matrix import CELLS, STOPPED, Cell, table
from tests.e2e.streams import until
from tests.e2e.system import System, eventually, running

SIMULATED = (
    "--engine", "simulated", "--name", "sim",
    "--engine-args", "tokens_per_second=20 per_request=1",
)  # fmt: skip
IN_CI = {"gateway-STOP", "replica_of_two-STOP", "replica_of_two-TERM"}
# Answers of the simulated engine take a second; what a busy machine adds.
USUAL = 8.0
COMPUTED = "engine core"
log = logging.getLogger(__name__)


@contextmanager
def fleet_for(folder: Path, gateways: int, *, real: bool) -> Iterator[Fleet]:
    """Two simulated replicas, or the default model on one."""
    options, replicas = ((), 1) if real else (SIMULATED, 2)
    with (
        running(folder, *options, replicas=replicas, within=180) as system,
        fleet_of(system, folder, gateways) as fleet,
    ):
        yield fleet


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    """Two gateways before two simulated replicas."""
    with fleet_for(tmp_path_factory.mktemp("two"), 2, real=False) as fleet:
        yield fleet


def test_the_docs_show_the_matrix() -> None:
    shown = (Path(__file__).parents[2] / "docs/operate/restarting.md").read_text()
    assert table() in shown, f"the table of restarting.md is to be:\n{table()}"


@pytest.mark.parametrize("cell", [c for c in CELLS if c.name in IN_CI], ids=lambda c: c.name)
async def test_clients_see_what_the_matrix_says(cell: Cell, two: Fleet) -> None:
    await _holds(cell, two)


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("gateways", [1, 2])
def test_clients_see_what_the_whole_matrix_says(tmp_path: Path, gateways: int) -> None:
    with fleet_for(tmp_path, gateways, real=False) as fleet:
        for cell in CELLS:
            if not cell.who.startswith(COMPUTED):
                asyncio.run(_holds(cell, fleet))


@pytest.mark.long
@pytest.mark.vllm
@pytest.mark.timeout(900)
@pytest.mark.parametrize("gateways", [1, 2])
@pytest.mark.parametrize(
    "cell", [c for c in CELLS if c.who.startswith(COMPUTED)], ids=lambda c: c.name
)
def test_clients_see_of_an_engine_core_what_the_matrix_says(
    tmp_path: Path, cell: Cell, gateways: int
) -> None:
    with fleet_for(tmp_path, gateways, real=True) as fleet:  # its own: three deaths are a loop
        asyncio.run(_holds(cell, fleet))


async def _holds(cell: Cell, fleet: Fleet) -> None:
    system = fleet.system
    before = _pids(system, cell.who)
    kinds = _processes(system)
    victim = min(before)
    model, tokens = ("penstock-mini", 200) if cell.who.startswith(COMPUTED) else ("sim", 20)
    async with flowing(fleet.ports, model, max_tokens=tokens, ignore_eos=True) as flow:
        await asyncio.sleep(2)
        await until(lambda: flow.begun >= STREAMING, within=60, what="streams under way")
        at = time.monotonic()
        await _strike(victim, cell.signal)
        await asyncio.to_thread(_as_before, fleet, cell, before)
        await _served_everywhere(flow, fleet.ports)
        again = await asyncio.to_thread(_as_before, fleet, cell, before)
        await asyncio.sleep(2)
    goes_on = cell.signal == "STOP"
    assert cell.may_be_replaced or (again == before) == goes_on, "who was stopped goes on"
    _tell(cell, flow, at, fleet.ports)
    for number, port in enumerate(fleet.ports):
        allowed = cell if number == 0 or cell.for_all else Cell(cell.who, cell.signal)
        _is_as_said(allowed, [e for e in flow.ended if e.port == port], at)
        assert flow.whole_since(at, port) > 5
    if cell.streams and cell.signal == "KILL":
        assert any(e.streamed and e.how in cell.streams for e in flow.ended), "nobody was hit"
    await asyncio.to_thread(
        eventually,
        lambda: _processes(system) == kinds and not _places(fleet),
        within=60,
        what=f"{kinds} and no place taken",
    )


async def _strike(pid: int, name: str) -> None:
    os.kill(pid, signal.Signals[f"SIG{name}"])
    if name == "STOP":
        await asyncio.sleep(STOPPED)
        with suppress(ProcessLookupError):  # it was given up
            os.kill(pid, signal.SIGCONT)


async def _served_everywhere(flow: Flow, ports: Sequence[int]) -> None:
    """Returns when each gateway has answered a request whole that came from now on."""
    now = time.monotonic()
    await until(
        lambda: all(flow.whole_since(now, port) for port in ports), within=300, what="answers"
    )


def _as_before(fleet: Fleet, cell: Cell, before: set[int]) -> set[int]:
    """Who is there once as many are as there were, without who was killed or told to end."""
    victim = min(before)

    def whole() -> set[int]:
        there = _pids(fleet.system, cell.who)
        gone = cell.signal == "STOP" or victim not in there
        return there if gone and len(there) == len(before) and fleet.is_whole() else set()

    found = eventually(whole, within=300, what=f"another {cell.who}")
    fleet.system.wait_ready(1 if cell.who.startswith(COMPUTED) else 2, within=60)
    return found


def _is_as_said(cell: Cell, ended: list[Ended], at: float) -> None:
    for each in ended:
        allowed = {WHOLE, *cell.requests, *(cell.streams if each.streamed else ())}
        assert each.how in allowed, (cell.name, each.how, each.end - at)
        if each.how != WHOLE:
            latest = max(cell.within, cell.waits, 2)
            assert each.end - at < latest, (cell.name, each.how, each.end - at)
        assert each.seconds < USUAL + cell.waits, (cell.name, each.how, each.seconds)


def _pids(system: System, who: str) -> set[int]:
    """The living processes of a kind."""
    words = {"head": "penstock.control.main head ", "node agent": "penstock.control.main node "}
    if who == "gateway":
        return {g["pid"] for g in system.admin("gateways") if g["state"] == "ready"}
    if who in words:
        return {p.pid for p in system.processes(words[who])}
    replicas = {int(r["pid"]) for r in system.replicas()}
    if not who.startswith(COMPUTED):
        return replicas
    return {core for pid in replicas for core in _engine_cores(pid)}


def _engine_cores(replica: int) -> Iterator[int]:
    with suppress(psutil.Error):  # it has just ended
        for child in psutil.Process(replica).children(recursive=True):
            if "EngineCore" in " ".join(child.cmdline()):
                yield child.pid


def _processes(system: System) -> Counter[str]:
    """How many run of each kind, `serve` and what engines have of their own left out."""
    kinds = ("main head ", "main node ", "penstock-gateway", "penstock.replica")
    return Counter({kind: len(system.processes(kind)) for kind in kinds})


def _places(fleet: Fleet) -> float:
    """Requests that the gateways still count as queued or under way."""
    taken = 0.0
    for port in (fleet.system.metrics_port, *(other.status_port for other in fleet.others)):
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as reply:
            lines = reply.read().decode().splitlines()
        names = ("penstock_gateway_in_flight", "penstock_gateway_queued")
        taken += sum(float(line.rsplit(" ", 1)[1]) for line in lines if line.startswith(names))
    return taken


def _tell(cell: Cell, flow: Flow, at: float, ports: list[int]) -> None:
    """What was measured, for whoever runs it with `--log-cli-level=INFO`."""
    for number, port in enumerate(ports, 1):
        mine = [e for e in flow.ended if e.port == port]
        ends = dict(Counter(e.how for e in mine))
        last = max((e.end - at for e in mine if e.how != WHOLE), default=0.0)
        longest = max(e.seconds for e in mine)
        seen = (cell.name, number, ends, last, longest)
        log.info("%s at gateway %d: %s, failing for %.1f s, longest %.1f s", *seen)
