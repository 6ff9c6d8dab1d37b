"""A machine that logged what it was told to."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator

from penstock.control.errors import PenstockError
from penstock.control.machine_logs.lines import logged, naming, time_of
from penstock.control.machine_logs.values import Author, LoggedLine, LoggedPart, LogQuestion

NOON_US = 1_769_860_800_000_000  # 2026-01-31T12:00:00Z


def line_of(author: Author, second: int, message: str, **more: str) -> LoggedLine:
    """A line that says when it was written."""
    time = f"2026-01-31T12:{second // 60:02}:{second % 60:02}.000Z"
    text = json.dumps({"time": time, "level": "info", "message": message, **more})
    return logged(author, text, time_of(text) or 0)


class LoggingMachine:
    """`MachineLogs`: what is in `written`, and then what is put into `comes`."""

    def __init__(self, *written: LoggedLine, gateways: tuple[str, ...] = ()) -> None:
        self.written = list(written)
        self.error: Exception | None = None  # that it answers with
        self.hangs = False  # it says that it is there, and tells nothing
        self.ends = False  # before it has told all
        self.note = ""
        self.asked: list[LogQuestion] = []
        self.comes: asyncio.Queue[LoggedPart | PenstockError] = asyncio.Queue()
        self.reading = 0
        self._gateways = gateways

    async def read(self, asked: LogQuestion) -> AsyncGenerator[LoggedPart, None]:
        self.asked.append(asked)
        self.reading += 1
        try:
            if self.error:
                raise self.error
            names = naming(asked.ids)
            found = [
                each
                for each in self.written
                if names(each.text.encode()) and each.time_us >= asked.since_us
            ]
            yield LoggedPart(found[-asked.tail :] if asked.tail else ())
            if self.hangs:
                yield LoggedPart()
                await asyncio.Event().wait()
            if self.ends:
                return
            yield LoggedPart(note=self.note, caught_up=True, gateways=self._gateways)
            while asked.follow:
                part = await self.comes.get()
                if isinstance(part, PenstockError):
                    raise part
                yield part
        finally:
            self.reading -= 1
