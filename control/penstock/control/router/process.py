"""A program's process: loads it, serves it, says where, until it is told to end."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
from collections.abc import Iterable, Mapping
from pathlib import Path
from secrets import token_hex
from typing import Final

from penstock.control.router import sandbox
from penstock.control.router.asks import Programs
from penstock.control.router.confine import confine
from penstock.control.router.logs import tell_end
from penstock.control.router.program import (
    BadProgram,
    Program,
    digest_of,
    program_of,
    program_of_module,
)
from penstock.control.router.server import announce, serve
from penstock.control.shipped_programs import shipped_programs

log = logging.getLogger(__name__)

GRACE_SECONDS: Final = 10.0  # for streams, once another process has taken over
UNBOUNDED: Final = "this kernel has no Landlock: what it may read is not bounded"


def run_router(path: Path, text: Path | None, digest: str, module: str | None) -> int:
    """Runs that text, that module, or all that ship; `path`: where it says how it is asked.
    Returns the exit code."""
    sandbox.end_if_it_stands_still()
    try:
        texts = {} if module else {"program": _read(text, digest)} if text else shipped_programs()
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with _free_port() as held:
            port = held.getsockname()[1]
            # A module is code of the machine's owner.
            if not module and not confine(port):
                log.warning(UNBOUNDED)
            asyncio.run(_run(texts, module, port, file))
    except (BadProgram, OSError) as error:
        tell_end(str(error))
        return 1
    return 0


def _read(file: Path, digest: str) -> str:
    text = file.read_bytes()
    if digest not in ("", digest_of(text)):
        raise BadProgram(f"{file} is not the text of digest {digest}")
    return text.decode("utf-8", "replace")


def _free_port() -> socket.socket:
    """Holds one until the server listens there, which shares it: nobody else can have it."""
    held = socket.socket()
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    held.bind(("127.0.0.1", 0))
    return held


async def _run(texts: Mapping[str, str], module: str | None, port: int, file: int) -> None:
    """Serves until SIGTERM, and then until no gateway has a stream, or the grace is over. Every
    thread begins here, within the bounds."""
    sandbox.end_if_it_stands_still()
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    token, programs = token_hex(32), Programs()
    server, _ = await serve(programs, token, port)
    if not module:
        confine()  # the port is taken: this thread takes none any more
    programs.add(*_loaded(texts, module))
    watching = asyncio.ensure_future(sandbox.watch(programs.stuck, file))
    announce(file, port, token, programs.programs)
    await stop.wait()
    await server.stop(GRACE_SECONDS)
    watching.cancel()


def _loaded(texts: Mapping[str, str], module: str | None) -> Iterable[Program]:
    if module:
        yield program_of_module(module)
    for name, text in texts.items():
        yield program_of(text, name)
