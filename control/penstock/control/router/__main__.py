"""`python -m penstock.control.router`: how the node agent starts it. Nobody else has to."""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import sys
from pathlib import Path
from secrets import token_hex

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

GRACE_SECONDS = 10.0  # for streams, once another process has taken over


def main() -> int:
    """Runs it; returns the exit code."""
    given = _parser().parse_args()
    sandbox.enter(given.with_parent)
    sandbox.end_if_it_stands_still()
    try:
        programs = _programs(given)
        asyncio.run(_run(Programs({each.digest: each for each in programs}), given.announce))
    except (BadProgram, OSError) as error:
        sys.stderr.write(f"router: error: {error}\n")
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("penstock.control.router")
    parser.add_argument("--announce", type=Path, required=True, help="the file that says where")
    parser.add_argument("--with-parent", type=int, default=0)
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--text", type=Path, help="a program's file; none: those that ship")
    which.add_argument("--module")
    parser.add_argument("--digest", default="", help="that the text must have")
    return parser


def _programs(given: argparse.Namespace) -> list[Program]:
    if given.module:
        return [program_of_module(given.module)]
    if given.text:
        text = given.text.read_bytes()
        if given.digest not in ("", digest_of(text)):
            raise BadProgram(f"{given.text} is not the text of digest {given.digest}")
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


if __name__ == "__main__":
    sys.exit(main())
