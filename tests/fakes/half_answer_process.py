"""A replica in a process of its own, which may be killed: begins each stream and never ends it.

Says where it listens in the first line of its output.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from tests.fakes.fake_replica import FakeCall, FakeReplica, hang
from tests.fakes.spoken import SPOKEN


async def half(call: FakeCall) -> None:
    """The beginning of an answer in the words of its endpoint."""
    spoken = SPOKEN[call.request.path]
    await call.send(spoken.begin + spoken.text("first"))
    await hang(call)


async def serve() -> None:
    """Until it is killed."""
    async with FakeReplica("r1", half) as replica:
        sys.stdout.write(f"{replica.address}\n")
        sys.stdout.flush()
        await asyncio.Event().wait()


@contextmanager
def half_answers() -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Such a process, and where it listens."""
    command = [sys.executable, "-m", "tests.fakes.half_answer_process"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process, process.stdout.readline().strip()
        finally:
            process.kill()


if __name__ == "__main__":
    asyncio.run(serve())
