"""The comparer counts for shadows that it was told of, and tells how they stand."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.control.comparer.comparer import Comparer
from penstock.control.comparer.ledger import Counted, Ledger
from penstock.control.errors import Code
from penstock.control.state.shadow.comparing import Order
from penstock.evals.comparison.checks.guardrails import TOO_SLOW
from penstock.v1 import shadow_pb2
from tests.control.comparer.asked import nobody
from tests.fakes.control_errors import raises_code
from tests.fakes.shadow_batches import RULE, answer, batch, pair

ORDER = Order(RULE, "chat", "small")


class FullLedger(Ledger):
    """One whose disk may be full."""

    full = False

    def take(self, batch: shadow_pb2.ShadowBatch) -> list[Counted]:
        if self.full:
            raise sqlite3.OperationalError("database or disk is full")
        return super().take(batch)


@pytest.fixture
def comparer(tmp_path: Path) -> Iterator[Comparer]:
    ledger = Ledger(tmp_path / "shadow.sqlite")
    yield Comparer(ledger)
    ledger.close()


async def test_pairs_that_come_before_the_shadows_are_known_wait_for_them(
    comparer: Comparer,
) -> None:
    async with asyncio.TaskGroup() as tasks:
        counting = tasks.create_task(comparer.count(batch(1, [pair(1)]), nobody))
        await asyncio.sleep(0)
        assert await comparer.keep([ORDER], keep_others=False) == [(RULE, "undecided", 0, 0)]
        await counting
    assert await comparer.keep([ORDER], keep_others=False) == [(RULE, "undecided", 1, 0)]


async def test_an_account_has_the_verdict_each_check_and_what_became_of_requests(
    comparer: Comparer,
) -> None:
    await comparer.keep([ORDER], keep_others=False)
    bad = answer("no", status=500)
    pairs = [pair(number, candidate=bad, again=answer()) for number in range(100)]
    await comparer.count(batch(1, pairs, outcomes={"paired": 100, "preempted": 3}), nobody)
    (standing,) = await comparer.keep([ORDER], keep_others=False)
    assert standing == (RULE, "worse", 100, 100)
    account = await comparer.account(RULE, 0)
    told = json.loads(account.json)
    assert (told["verdict"], told["primary"], told["candidate"]) == ("worse", "chat", "small")
    assert told["outcomes"] == {"paired": 100, "preempted": 3}
    assert {"error", "ttft", "length"} <= {check["name"] for check in told["checks"]}
    assert "Worse: small beside chat" in account.markdown
    assert "<h1>Worse: small beside chat</h1>" in account.html
    assert "- sampled requests, preempted: 3" in account.markdown
    with raises_code(Code.UNKNOWN_SHADOW, match="other"):
        await comparer.account("other", 0)


async def test_a_batch_that_cannot_be_written_is_told_of_until_one_can(tmp_path: Path) -> None:
    ledger = FullLedger(tmp_path / "shadow.sqlite")
    comparer = Comparer(ledger)
    await comparer.keep([ORDER], keep_others=False)
    ledger.full = True
    with pytest.raises(sqlite3.OperationalError):
        await comparer.count(batch(1, [pair(1)]), nobody)
    assert comparer.trouble.startswith("cannot write what it counts: database or disk is full")
    ledger.full = False
    await comparer.count(batch(1, [pair(1)]), nobody)
    assert comparer.trouble == ""
    assert ledger.tally(RULE).pairs == 1
    ledger.close()


async def test_an_operators_pattern_decides_and_one_that_never_ends_holds_up_nobody(
    comparer: Comparer,
) -> None:
    patterns = (("codename", "(?i)project x"), ("nested", "(a|aa)+$"))
    await comparer.keep([Order(RULE, "chat", "small", guardrails=patterns)], keep_others=False)
    quick = [pair(n, candidate=answer("Project X")) for n in range(60)]
    slow = [pair(n, candidate=answer("a" * 10_000 + "b")) for n in range(60, 64)]
    await comparer.count(batch(1, [*quick, *slow]), nobody)
    told = json.loads((await comparer.account(RULE, 0)).json)
    assert told["verdict"] == "worse"
    assert told["guardrail_hits"] == {"candidate: codename": 60, TOO_SLOW: 4}


async def test_it_says_what_margins_take_with_the_traffic_that_there_is(comparer: Comparer) -> None:
    await comparer.keep([ORDER], keep_others=False)
    account = await comparer.account(RULE, 500)
    first = json.loads(account.json)["plan"][0]
    assert first["name"] == "error"
    assert first["equal_days"] == first["equal"] / 500
    assert first["margin"] == 0.01
    assert "What it takes, at 500 sessions a day" in account.markdown


async def test_without_traffic_it_says_how_many_pairs_margins_take_and_no_days(
    comparer: Comparer,
) -> None:
    await comparer.keep([ORDER], keep_others=False)
    account = await comparer.account(RULE, 0)
    first = json.loads(account.json)["plan"][0]
    assert (first["equal"] > 100, first["equal_days"], first["worse_days"]) == (True, None, None)
    assert "What it takes:" in account.markdown


async def test_days_are_reckoned_by_sessions_once_it_is_known_how_many_pairs_each_has(
    comparer: Comparer,
) -> None:
    await comparer.keep([ORDER], keep_others=False)
    await comparer.count(
        batch(1, [pair(number, session=number // 2) for number in range(200)]), nobody
    )
    account = await comparer.account(RULE, 500)
    assert "at 250 sessions a day" in account.markdown
