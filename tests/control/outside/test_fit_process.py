"""Asking the replica room, a process of its own."""

from __future__ import annotations

import sys

import pytest

from penstock.control.errors import Unavailable
from penstock.control.outside.fit_process import FitProcess
from penstock.control.outside.process_memory import ProcessMemory


async def test_the_replica_room_answers() -> None:
    told = await FitProcess(limit=60).told(["--free", str(8 << 30), "--", "penstock-mini"])
    assert told["verdict"] == "fits"


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("print(1)", "is no object"),
        ("print('{')", "cannot be read"),
        ("import time; time.sleep(60)", r"within 0\.5 s"),
        ("raise SystemExit('x: error: there is no directory')", "^there is no directory$"),
    ],
)
async def test_what_does_not_answer_is_told(code: str, words: str) -> None:
    limit = 0.5 if "sleep" in code else 30
    with pytest.raises(Unavailable, match=words):
        await FitProcess([sys.executable, "-c", code], limit).told([])


async def test_what_cannot_be_started_is_told() -> None:
    with pytest.raises(Unavailable, match="no sum of memory"):
        await FitProcess(["/no/such/program"]).told([])


def test_a_group_that_is_gone_has_no_memory() -> None:
    assert ProcessMemory(None).groups({2**22 + 1}) == {}
