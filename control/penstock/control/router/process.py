"""A program's process: loads it, serves it, says where, until it is told to end."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path
from secrets import token_hex
from typing import Final

from penstock.control.router import sandbox
from penstock.control.router.asks import Programs
from penstock.control.router.program import (
    BadProgram,
    Program,
    digest_of,
    program_of,
    program_of_module,
    shipped_texts,
)
from penstock.control.router.server import announce, serve, withdraw

GRACE_SECONDS: Final = 10.0  # for streams, once another process has taken over


def run_router(path: Path, text: Path | None, digest: str, module: str | None) -> int:
    """Runs that text, that module, or all that ship; `path`: where it says how it is asked.
    Returns the exit code."""
    sandbox.end_if_it_stands_still()
    try:
        programs = _programs(text, digest, module)
        asyncio.run(_run(Programs({each.digest: each for each in programs}), path))
    except (BadProgram, OSError) as error:
        sys.stderr.write(f"router: error: {error}\n")
        return 1
    return 0


def _programs(file: Path | None, digest: str, module: str | None) -> list[Program]:
    if module:
        return [program_of_module(module)]
    if file:
        text = file.read_bytes()
        if digest not in ("", digest_of(text)):
            raise BadProgram(f"{file} is not the text of digest {digest}")
        return [program_of(text.decode("utf-8", "replace"))]
    return [program_of(text, name) for name, text in shipped_texts().items()]


async def _run(programs: Programs, path: Path) -> None:
    """Serves until SIGTERM, and then until no gateway has a stream, or the grace is over."""
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    token = token_hex(32)
    async with asyncio.TaskGroup() as tasks:
        watching = tasks.create_task(sandbox.watch(programs.stuck))
        server, port = await serve(programs, token)
        announce(path, port, token, programs.programs)
        await stop.wait()
        withdraw(path, os.getpid())
        await server.stop(GRACE_SECONDS)
        watching.cancel()
