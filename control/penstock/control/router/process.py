"""A program's process: loads it, serves it, says where, until it is told to end."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from secrets import token_hex
from typing import Final

from penstock.control.router import sandbox
from penstock.control.router.asks import Programs
from penstock.control.router.confine import confine
from penstock.control.router.program import (
    BadProgram,
    Program,
    digest_of,
    program_of,
    program_of_module,
)
from penstock.control.router.server import announce, serve, withdraw
from penstock.control.shipped_programs import shipped_programs

GRACE_SECONDS: Final = 10.0  # for streams, once another process has taken over


def run_router(path: Path, text: Path | None, digest: str, module: str | None) -> int:
    """Runs that text, that module, or all that ship; `path`: where it says how it is asked.
    Returns the exit code."""
    sandbox.end_if_it_stands_still()
    try:
        texts = {} if module else {"program": _read(text, digest)} if text else shipped_programs()
        asyncio.run(_run(texts, module, path))
    except (BadProgram, OSError) as error:
        sys.stderr.write(f"router: error: {error}\n")
        return 1
    return 0


def _read(file: Path, digest: str) -> str:
    text = file.read_bytes()
    if digest not in ("", digest_of(text)):
        raise BadProgram(f"{file} is not the text of digest {digest}")
    return text.decode("utf-8", "replace")


async def _run(texts: Mapping[str, str], module: str | None, path: Path) -> None:
    """Serves until SIGTERM, and then until no gateway has a stream, or the grace is over."""
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    token, programs = token_hex(32), Programs()
    server, port = await serve(programs, token)
    # Before a line of a program runs. A module is code of the machine's owner.
    if not module and not confine(path.parent):
        sys.stderr.write("router: this kernel has no Landlock: what it may read is not bounded\n")
    programs.add(*_loaded(texts, module))
    watching = asyncio.ensure_future(sandbox.watch(programs.stuck))
    announce(path, port, token, programs.programs)
    await stop.wait()
    withdraw(path, os.getpid())
    await server.stop(GRACE_SECONDS)
    watching.cancel()


def _loaded(texts: Mapping[str, str], module: str | None) -> Iterable[Program]:
    if module:
        yield program_of_module(module)
    for name, text in texts.items():
        yield program_of(text, name)
