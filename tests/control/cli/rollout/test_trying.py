"""`penstock test` and `penstock spend`, against a real admin API."""

from __future__ import annotations

import asyncio
import json

from penstock.control.errors import Code, PenstockError
from penstock.control.state.cluster import ClusterView
from penstock.control.state.rollout.trial import Outcome
from penstock.control.state.tenancy.usage import Counts, Reading, UsageKey
from tests.control.cli.conftest import AskedHead
from tests.fakes.control_values import MINI, NOON, replica
from tests.fakes.fake_replica import DONE, delta, last_delta

DEPLOY = ("deploy", "mini", "--model", "m", "--engine", "simulated")


def with_replica(view: ClusterView) -> ClusterView:
    """The view with a replica of mini that serves."""
    known = view.deployments[MINI]
    one = replica(uid=known.uid, digest=known.template_digest)
    return view.with_replica(one)


def test_a_deployment_is_tried_and_what_came_is_told(asked_head: AskedHead) -> None:
    asked_head.run(*DEPLOY)
    cluster = asked_head.admin.cluster
    cluster.replace(with_replica(cluster.view()))
    asked_head.admin.replicas.answer = Outcome(
        delta("Hello") + last_delta() + DONE,
        prompt_tokens=9,
        completion_tokens=2,
        cost_nanousd=1_500,
        ttft_us=1_500_000,
        total_us=2_500_000,
        model="m",
        backend="simulated",
        backend_version="1",
    )
    said = asked_head.run("test", "mini")
    assert said.exit_code == 0, said.stderr
    first, second, third = said.stdout.splitlines()
    assert first == "mini answers in 2500 ms, the first of it after 1500 ms: 'Hello'"
    assert second == "  stop; 9 prompt tokens, 2 completion tokens; $0.0000015"
    assert third.startswith("  m by simulated 1, replica r1, request test-")
    assert json.loads(asked_head.run("test", "mini", "--json").stdout)["cost_usd"] == 0.0000015
    asked_head.admin.replicas.answer = PenstockError(
        "the replica at r1:9000 answers 429: slowly", Code.REPLICA_FAILED
    )
    failed = asked_head.run("test", "mini")
    assert failed.exit_code == 1
    assert "answers 429: slowly" in failed.stderr


def test_what_was_spent_is_listed_against_the_budgets(asked_head: AskedHead) -> None:
    asked_head.run(*DEPLOY, "--set", "budget_usd_per_day=2", "--set", "budget_tokens_per_day=9")
    counts = Counts(3, 0, 300, 99, 0, 1_500_000_000)
    reading = Reading(NOON.date(), "i", UsageKey("", "", "mini", ""), counts)
    asyncio.run(asked_head.admin.store.record([reading]))
    asyncio.run(asked_head.admin.services.spend.judge())
    told = asked_head.run("spend", "mini")
    assert told.exit_code == 0, told.stderr
    words = " ".join(told.stdout.split())
    assert "2026-01-02 $1.50 3 300 99" in words
    assert "today: $1.50 of $2, 399 tokens of 9" in words
    assert "budget: used up, it begins anew at 2026-01-03 00:00 UTC" in words
    assert json.loads(asked_head.run("spend", "mini", "--json").stdout)["used_up"]
