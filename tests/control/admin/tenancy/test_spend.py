"""What deployments spent, as the admin API tells it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from penstock.control.state.tenancy.usage import Counts, Reading, UsageKey
from tests.control.admin.app_harness import Admin, assert_problem, running_admin
from tests.fakes.control_values import NOON

BASE = "/admin/v1/deployments"
CLOUD = {
    "name": "cloud",
    "engine": "openai",
    "model": "gpt",
    "engine_args": {"api_key_env": "OPENAI_API_KEY"},
    "budget_usd_per_day": 2,
    "budget_tokens_per_day": 1000,
}
TODAY = NOON.date()


@pytest.fixture
async def admin() -> AsyncIterator[Admin]:
    """An app with a provider that has budgets, and was used on four days."""
    async with running_admin() as running:
        await running.client.post(BASE, json=CLOUD)
        cloud, other = (UsageKey("acme", "key_1", name, "") for name in ("cloud", "other"))
        await running.store.record(
            [
                Reading(TODAY, "i", cloud, Counts(3, 0, 300, 99, 0, 1_500_000_000)),
                Reading(TODAY, "j", cloud, Counts(1, 0, 100, 1, 0, 250_000_000)),
                Reading(TODAY, "i", other, Counts(9, cost_nanousd=9)),
                Reading(TODAY - timedelta(days=2), "k", cloud, Counts(1, 0, 5, 6, 0, 7)),
                Reading(TODAY - timedelta(days=40), "k", cloud, Counts(2, 0, 10, 12, 0, 14)),
            ]
        )
        yield running


async def test_today_and_the_days_before_stand_against_the_budgets(admin: Admin) -> None:
    await admin.services.spend.judge()
    told = (await admin.client.get(f"{BASE}/cloud/spend")).json()
    today = {
        "day": "2026-01-02",
        "requests": 4,
        "prompt_tokens": 400,
        "completion_tokens": 100,
        "usd": 1.75,
    }
    assert told == {
        "deployment": "cloud",
        "budget_usd_per_day": 2.0,
        "budget_tokens_per_day": 1000,
        "used_up": False,
        "resets_at": "2026-01-03T00:00:00Z",
        "today": today,
        "days": [
            today,
            {
                "day": "2025-12-31",
                "requests": 1,
                "prompt_tokens": 5,
                "completion_tokens": 6,
                "usd": 7e-9,
            },
        ],
    }
    assert len((await admin.client.get(f"{BASE}/cloud/spend?days=60")).json()["days"]) == 3
    assert len((await admin.client.get(f"{BASE}/cloud/spend?days=1")).json()["days"]) == 1
    assert_problem(await admin.client.get(f"{BASE}/cloud/spend?days=0"), 422, "days")
    assert_problem(await admin.client.get(f"{BASE}/none/spend"), 404, "'none'")


async def test_a_deployment_tells_how_its_budget_stands(admin: Admin) -> None:
    await admin.services.spend.judge()
    told = (await admin.client.get(f"{BASE}/cloud")).json()
    assert told["managed"]
    assert told["status"]["budget"] == {
        "used_up": False,
        "resets_at": "2026-01-03T00:00:00Z",
        "today": {"requests": 4, "prompt_tokens": 400, "completion_tokens": 100, "usd": 1.75},
    }
    less = {"budget_usd_per_day": 1.75}
    await admin.client.patch(f"{BASE}/cloud/settings", json=less)
    await admin.services.spend.judge()
    assert (await admin.client.get(f"{BASE}/cloud")).json()["status"]["budget"]["used_up"]
    assert (await admin.client.get(f"{BASE}/cloud/spend")).json()["used_up"]


async def test_a_deployment_without_a_budget_has_no_end_of_one(admin: Admin) -> None:
    no_budget = {"budget_usd_per_day": 0, "budget_tokens_per_day": 0}
    await admin.client.patch(f"{BASE}/cloud/settings", json=no_budget)
    await admin.services.spend.judge()
    told = (await admin.client.get(f"{BASE}/cloud/spend")).json()
    assert (told["used_up"], told["resets_at"], told["today"]["usd"]) == (False, None, 1.75)
