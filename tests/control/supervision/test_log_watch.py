"""Log files are looked after for as long as a process runs."""

from __future__ import annotations

import asyncio
import os
from datetime import timedelta
from pathlib import Path

from penstock.control.settings import LogRetention
from penstock.control.supervision.log_watch import LOOK_EVERY, keep_logs
from tests.fakes.control_clock import ManualClock
from tests.fakes.waiting import until


async def test_what_became_too_old_meanwhile_is_thrown_away(tmp_path: Path) -> None:
    clock, keep = ManualClock(), LogRetention(days=1)
    gone = tmp_path / "gone-1.log"
    gone.write_text("the end\n")
    written = clock.now().timestamp()
    os.utime(gone, (written, written))
    async with asyncio.TaskGroup() as tasks:
        watch = tasks.create_task(keep_logs(tmp_path, keep, clock))
        await until(lambda: clock.sleepers == 1, "it has looked")
        assert gone.exists()
        clock.advance(timedelta(days=1) + LOOK_EVERY)
        await until(lambda: not gone.exists(), "it looked again")
        watch.cancel()
