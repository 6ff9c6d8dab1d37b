"""Asks the replica room for its sum: `python -m penstock.replica.fit`, a process of its own."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Final

from penstock.control.errors import Unavailable

LIMIT_SECONDS: Final = 5.0
COMMAND: Final = (sys.executable, "-m", "penstock.replica.fit")


class FitProcess:
    """A `SumSource` over processes; `command`: what is run."""

    def __init__(self, command: Sequence[str] = COMMAND, limit: float = LIMIT_SECONDS) -> None:
        self._command = command
        self._limit = limit

    async def told(self, arguments: Sequence[str]) -> Mapping[str, Any]:
        """Its answer. Raises `Unavailable` where there is none, with its last words."""
        try:
            process = await asyncio.create_subprocess_exec(
                *self._command,
                "--json",
                *arguments,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
            )
        except OSError as error:
            raise Unavailable(f"no sum of memory: {error}") from error
        try:
            async with asyncio.timeout(self._limit):
                output, errors = await process.communicate()
        except TimeoutError:
            raise Unavailable(f"no sum of memory within {self._limit:g} s") from None
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        if process.returncode != 0:
            said = errors.decode(errors="replace").strip().rpartition("\n")[2]
            raise Unavailable(said.partition("error: ")[2] or f"no sum of memory: {said}")
        return _object(output)


def _object(output: bytes) -> Mapping[str, Any]:
    try:
        told = json.loads(output)
    except ValueError as error:
        raise Unavailable(f"the sum of memory cannot be read: {error}") from error
    if not isinstance(told, dict):
        raise Unavailable("the sum of memory is no object")
    return told
