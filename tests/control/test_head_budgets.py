"""Budgets in a real head that is killed: told to every gateway in time, and never forgotten."""

from __future__ import annotations

import signal
import time
from collections.abc import AsyncIterator
from pathlib import Path
from random import Random

import pytest

from penstock.v1 import routes_pb2
from tests.control.head_process import HeadProcess, running_head
from tests.control.test_head import beside
from tests.control.test_head_tenants import GATEWAYS, CountingGateway, ask
from tests.fakes.control_waiting import eventually

pytestmark = pytest.mark.processes

TOKENS, NANOUSD = 13, 2_000_000  # of each request
REQUESTS = 50  # that the budget is for


@pytest.fixture
async def head(tmp_path: Path) -> AsyncIterator[HeadProcess]:
    async with running_head(tmp_path / "data") as head:
        yield head


class DearGateway(CountingGateway):
    """Each of its requests costs money."""

    def report(self) -> routes_pb2.GatewayReport:
        report = super().report()
        report.usage[0].cost_nanousd = NANOUSD * self.requests
        return report

    @property
    def told(self) -> tuple[bool, int]:
        """Whether the budget is used up, and when it begins anew, as its routes say."""
        for route in self.snapshot.deployments:
            return route.budget_used_up, route.budget_resets_at_ms
        return False, 0


async def used_up(head: HeadProcess, **budget: float) -> list[DearGateway]:
    """Gateways that work until the budget is used up and all of them know."""
    gateways = [DearGateway(f"gw-{n}", Random(n)) for n in range(GATEWAYS)]

    async def spent() -> bool:
        return sum(gateway.done for gateway in gateways) >= REQUESTS

    async def all_know() -> bool:
        return all(gateway.told[0] for gateway in gateways)

    canned = {"engine": "canned", "model": "sorry", "engine_args": {"text": "Sorry."}}
    await ask(head, "PUT", "deployments/mini", **canned, replicas=0, **budget)
    watching = (gateway.watches(head) for gateway in gateways)
    async with beside(*watching, *(gateway.reports(head) for gateway in gateways)):
        await eventually(spent, "the budget is spent")
        began = time.monotonic()
        await eventually(all_know, "all know")
        assert time.monotonic() - began < 1  # and gateways report each second: two in all
    return gateways


async def test_a_used_up_budget_is_told_in_time_and_outlives_a_head_that_is_killed(
    head: HeadProcess,
) -> None:
    gateways = await used_up(head, budget_tokens_per_day=REQUESTS * TOKENS)
    version = max(gateway.snapshot.version for gateway in gateways)

    async def all_hear() -> bool:
        return all(gateway.snapshot.version > version for gateway in gateways)

    async with beside(*(gateway.watches(head) for gateway in gateways)):
        head.end(signal.SIGKILL)
        await head.start()
        await eventually(all_hear, "all hear of the new head")
        assert all(gateway.told[0] for gateway in gateways)


async def test_money_is_shown_to_the_last_request_and_more_of_it_lets_all_go_on(
    head: HeadProcess,
) -> None:
    gateways = await used_up(head, budget_usd_per_day=REQUESTS * NANOUSD / 1e9)
    for gateway in gateways:
        await gateway.ends(head)
    told = await head.get("deployments/mini/spend")
    done = sum(gateway.done for gateway in gateways)
    today = told["today"]
    assert told["used_up"]
    assert today["prompt_tokens"] + today["completion_tokens"] == TOKENS * done
    assert today["usd"] == pytest.approx(NANOUSD * done / 1e9)

    async def all_go_on() -> bool:
        return all(gateway.told == (False, 0) for gateway in gateways)

    await ask(head, "PATCH", "deployments/mini/settings", budget_usd_per_day=0)
    async with beside(*(gateway.watches(head) for gateway in gateways)):
        await eventually(all_go_on, "all go on")
