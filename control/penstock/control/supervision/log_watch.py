"""Looks after the log files of a data directory, whoever writes them."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from pathlib import Path

from penstock.control.log_files import sweep
from penstock.control.settings import LogRetention
from penstock.control.supervision.clock import Clock

LOOK_EVERY = timedelta(seconds=2)


async def keep_logs(folder: Path, keep: LogRetention, clock: Clock) -> None:
    """Keeps them within bounds until cancelled; in a thread of its own, since it copies."""
    while True:
        await asyncio.to_thread(sweep, folder, keep, clock.now())
        await clock.sleep(LOOK_EVERY)
