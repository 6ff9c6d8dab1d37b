"""Rude clients, as a process of their own that stands back for all others on the machine.

`python -m penstock.evals.rude_clients PORT MODEL KIND CLIENTS SECONDS`, the key on its standard
input. Prints what it was answered and the CPU that it took, as JSON.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import os
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from penstock.evals.rude_kinds import KINDS, Rude

NICE = 19
AUTOGROUP = Path("/proc/self/autogroup")
STALL_SECONDS = 20.0  # that a client holds on to what it has begun
READ = 1 << 16


@dataclass(frozen=True, slots=True)
class Gateway:
    """Where they ask, for which model, with which key."""

    port: int
    model: str
    key: str = field(repr=False)


async def run(gateway: Gateway, kinds: list[str], clients: int, seconds: float) -> list[str]:
    """What all clients were answered: statuses, or how it ended else."""
    numbers = itertools.count()
    answers: list[str] = []
    until = time.monotonic() + seconds

    async def client(kind: str) -> None:
        while (left := until - time.monotonic()) > 0:
            rude = KINDS[kind](gateway.model, next(numbers))
            try:
                async with asyncio.timeout(min(left, STALL_SECONDS)):
                    answers.append(await _send(gateway, rude))
            except TimeoutError:
                answers.append("no answer")
            except OSError:
                answers.append("cut off")

    async with asyncio.TaskGroup() as group:
        for number in range(clients):
            group.create_task(client(kinds[number % len(kinds)]))
    return answers


async def _send(gateway: Gateway, rude: Rude) -> str:
    reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
    try:
        writer.write(_head(rude, gateway.key))
        writer.write(rude.body[: int(len(rude.body) * rude.sent)])
        await writer.drain()
        status = await reader.readline()
        while await reader.read(READ):
            pass
    finally:
        writer.close()
    return status.split(b" ")[1].decode() if b" " in status else "cut off"


def _head(rude: Rude, key: str) -> bytes:
    lines = (
        f"POST {rude.path} HTTP/1.1",
        "Host: 127.0.0.1",
        "Content-Type: application/json",
        "Connection: close",
        f"Authorization: Bearer {key}",
        f"Content-Length: {len(rude.body)}",
    )
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def _stand_back() -> None:
    """Lets all others go first. Linux may weigh whole sessions against each other, and niceness
    within one alone: so this is a session of its own, with that weight."""
    os.nice(NICE)
    with contextlib.suppress(OSError):
        os.setsid()
        AUTOGROUP.write_text(str(NICE))


def main(words: list[str]) -> None:
    """Runs the command line's clients."""
    port, model, kind, clients, seconds = words
    _stand_back()
    gateway = Gateway(int(port), model, sys.stdin.readline().strip())
    kinds = list(KINDS) if kind == "all" else [kind]
    answers = asyncio.run(run(gateway, kinds, int(clients), float(seconds)))
    took = time.process_time()
    sys.stdout.write(json.dumps({"answers": dict(Counter(answers)), "cpu_seconds": took}))


if __name__ == "__main__":
    main(sys.argv[1:])
