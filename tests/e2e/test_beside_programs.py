"""What else a deployment with a router program has: other gateways, a canary, a shadow."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from pathlib import Path

import httpx
import pytest

from tests.e2e import verbs
from tests.e2e.fleet import fleet_of
from tests.e2e.moved_context import MODEL, Json, sets, switched, total, up
from tests.e2e.system import System, eventually

NEXT = "next"
ENGINE: Json = {"tokens_per_second": 400, "answer_tokens": 8}
ASKS = "penstock_gateway_program_asks_total"


_numbers = itertools.count()


@pytest.fixture(scope="module")
def system(folder: Path) -> Iterator[System]:
    """Two simulated engines that a program leads, and another deployment."""
    fields: Json = {"engine": "simulated", "model": "m", "engine_args": ENGINE, "replicas": 2}
    with up(folder, within=60, **fields) as system:
        other = {"engine": "simulated", "model": "m", "engine_args": ENGINE}
        system.change("PUT", f"deployments/{NEXT}", other)
        eventually(lambda: len(system.replicas()) == 3, within=30, what="both serve")
        yield system


def ask(port: int) -> Mapping[str, str]:
    """The headers of a whole answer at that gateway, to a question of its own: one body has one
    share."""
    said = [{"role": "user", "content": f"How do {next(_numbers)} trains find their way?"}]
    body = {"model": MODEL, "messages": said, "max_tokens": 8}
    url = f"http://127.0.0.1:{port}/v1/chat/completions"
    reply = httpx.post(url, json=body, trust_env=False, timeout=60)
    assert reply.status_code == 200, reply.text
    return reply.headers


def told(system: System) -> list[Json]:
    """What gateways say of the program."""
    found: list[Json] = system.admin(f"deployments/{MODEL}")["status"]["program"]["gateways"]
    return found


def test_two_gateways_ask_the_one_program_of_their_node(system: System, folder: Path) -> None:
    switched(system, "data_parallel")
    programs = ("--programs-dir", str(system.data / "programs"))
    with fleet_of(system, folder, 2, *programs) as fleet:
        eventually(lambda: len(told(system)) == 2, within=20, what="both tell of it")

        def both_ask() -> bool:
            for port in fleet.ports:
                ask(port)
            return all(it["decided"] >= 4 and not it["unavailable"] for it in told(system))

        eventually(both_ask, within=30, what="both ask it")
        (process,) = system.processes("penstock.control.router")
        process.kill()
        before = {it["gateway"]: it["decided"] for it in told(system)}

        def both_ask_again() -> bool:
            both_ask()
            return all(it["decided"] > before[it["gateway"]] + 2 for it in told(system))

        eventually(both_ask_again, within=30, what="both ask the next one")


def test_a_canarys_share_is_not_asked_about(system: System) -> None:
    switched(system, "data_parallel")
    sets(system, canary=[{"deployment": NEXT, "permille": 500}])
    eventually(
        lambda: ask(system.gateway_port)["x-penstock-backend"] == NEXT, within=20, what="a share"
    )
    before = total(system, ASKS)
    answered = [ask(system.gateway_port)["x-penstock-backend"] for _ in range(40)]
    assert set(answered) == {MODEL, NEXT}
    assert total(system, ASKS) - before == answered.count(MODEL)
    sets(system, canary=[])


def test_a_shadows_copies_are_not_asked_about(system: System) -> None:
    switched(system, "data_parallel")
    at = ("--data-dir", str(system.data))
    verbs.penstock("shadow", "create", "try", MODEL, NEXT, "share_permille=1000", *at)
    before, asked = total(system, ASKS), 0

    def paired() -> bool:
        nonlocal asked
        asked += 1
        ask(system.gateway_port)
        report = system.admin("shadows/try/report")["report"]
        return bool(report["pairs"] >= 5 and report["self_pairs"])

    eventually(paired, within=40, what="pairs")
    assert total(system, ASKS) - before == asked
    verbs.penstock("shadow", "delete", "try", "--yes", *at)
