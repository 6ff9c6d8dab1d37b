"""What an agent does where its machine gives it no more of something."""

from __future__ import annotations

import os
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from penstock.control import log_files
from penstock.control.errors import LaunchFailed
from penstock.control.node_agent.warm_dependencies import Forked, StartOrder, Told
from penstock.control.outside.processes import start_time
from penstock.control.outside.warm_processes import WarmMember, start_zygote
from tests.fakes.waiting import until

pytestmark = pytest.mark.processes

FAKE_ZYGOTE = Path(__file__).parents[2] / "fakes" / "fake_zygote.py"


def none_left(*args: Any) -> Any:
    raise OSError(24, "Too many open files")


async def test_a_retired_zygote_tells_what_claimed_members_exit_with_and_then_ends(
    tmp_path: Path,
) -> None:
    heard: list[Told] = []
    argv = [sys.executable, str(FAKE_ZYGOTE), str(tmp_path), "--engine", "simulated"]
    zygote = start_zygote(argv, tmp_path / "pool.log", heard.append)
    zygote.want(2)
    await until(lambda: sum(isinstance(told, Forked) for told in heard) == 2, "members")
    claimed, waiting = (told.member for told in heard if isinstance(told, Forked))
    words = [sys.executable, "-c", "import time; time.sleep(0.3); raise SystemExit(72)"]
    order = StartOrder("simulated", words, {}, tmp_path / "replica.log")
    await claimed.become(order, within=timedelta(seconds=5))
    zygote.retire()
    await waiting.process.wait()
    assert await claimed.process.wait() == 72
    await until(lambda: start_time(zygote.pid) is None, "its end")


async def test_without_descriptors_a_zygote_and_a_claim_fail_as_those_that_may_be_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard: list[Told] = []
    argv = [sys.executable, str(FAKE_ZYGOTE), str(tmp_path), "--engine", "simulated"]
    with monkeypatch.context() as patch:
        patch.setattr(os, "pidfd_open", none_left)
        with pytest.raises(LaunchFailed, match="Too many open files"):
            start_zygote(argv, tmp_path / "pool.log", heard.append)
    zygote = start_zygote(argv, tmp_path / "pool.log", heard.append)
    try:
        zygote.want(1)
        await until(lambda: isinstance(heard[-1:] and heard[-1], Forked), "a member")
        (member,) = (told.member for told in heard if isinstance(told, Forked))
        assert isinstance(member, WarmMember)
        monkeypatch.setattr(log_files, "opened", none_left)
        order = StartOrder("simulated", ["no"], {}, tmp_path / "replica.log")
        with pytest.raises(LaunchFailed, match="Too many open files"):
            await member.become(order, within=timedelta(seconds=1))
    finally:
        await zygote.end()
