"""What is written to a log from now on. Blocks: for a thread."""

from __future__ import annotations

import os
from collections import deque
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, Final

from penstock.control.log_files import alone, segments
from penstock.control.state.providers.secret_texts import without_secrets

MOST_PART: Final = 64 << 10  # bytes that are read at a time; a longer line is told as several
CUT: Final = "lines are missing here: the log was cut, and what it held is gone"


class Following:
    """What is written to a log from a moment on, wherever the log is cut or set aside meanwhile."""

    def __init__(self, log: Path, *, whole: bool = False) -> None:
        """`whole`: what was written before too."""
        self._log = log
        self._file: BinaryIO | None = None
        self._at = 0
        self._segment = ""  # the newest, when we last looked
        self._cut_off: deque[tuple[BinaryIO, int]] = deque()  # and where each ends
        self.missing = False  # lines, since this was last set to false
        self._open()
        if not whole:
            self._at = self._length()

    @property
    def begins_at(self) -> int:
        """How much was written before, to the file that is written to now."""
        return self._at

    def read(self) -> bytes:
        """Some of what was written since; empty where that is nothing."""
        if data := self._of_cut_off():
            return data
        if self._file is None:
            self._open()
            return b""
        moved = self._is_moved(self._file)
        if not moved and not self._goes_on(self._file):
            return self._of_cut_off()
        data = os.pread(self._file.fileno(), MOST_PART, self._at)
        self._at += len(data)
        if moved and not data:
            self.close()
            self._open()
        return data

    def close(self) -> None:
        """Lets go of the files."""
        for file in (self._file, *(cut for cut, _ in self._cut_off)):
            if file is not None:
                file.close()
        self._file = None
        self._cut_off.clear()

    def _open(self) -> None:
        newest = segments(self._log)[-1:]
        self._segment, self._at = (newest[0].name if newest else ""), 0
        with suppress(OSError):
            self._file = self._log.open("rb")

    def _goes_on(self, file: BinaryIO) -> bool:
        """Whether it was not cut since we last looked; else the rest is taken from the segments."""
        if not self._newer() and self._length() >= self._at:
            return True
        try:
            with alone(self._log.parent):  # whoever cuts has done it, or has not begun
                newer = self._newer()
                self.missing |= not newer
                for path in newer:
                    cut = path.open("rb")
                    cut.seek(self._at)
                    self._cut_off.append((cut, os.fstat(cut.fileno()).st_size))
                    self._at, self._segment = 0, path.name
                self._at = 0
        except BlockingIOError:
            return False
        except OSError:
            self.missing = True
        return False

    def _newer(self) -> list[Path]:
        return [path for path in segments(self._log) if path.name > self._segment]

    def _of_cut_off(self) -> bytes:
        while self._cut_off:
            file, end = self._cut_off[0]
            if data := file.read(min(MOST_PART, max(0, end - file.tell()))):
                return data
            file.close()
            self._cut_off.popleft()
        return b""

    def _is_moved(self, file: BinaryIO) -> bool:
        """Whether another file is there now, or none: a new process is started, or about to be."""
        try:
            return os.stat(self._log).st_ino != os.fstat(file.fileno()).st_ino
        except OSError:
            return True

    def _length(self) -> int:
        return os.fstat(self._file.fileno()).st_size if self._file else 0


class WholeLines:
    """Puts what is read together to lines, as they may be shown."""

    def __init__(self) -> None:
        self._begun = b""

    def of(self, data: bytes, *, last: bool = False) -> bytes:
        """The lines that are whole by now; of the `last` data all of it."""
        data = self._begun + data
        end = data.rfind(b"\n") + 1
        if last or (not end and len(data) >= MOST_PART):
            data = data if data.endswith(b"\n") or not data else data + b"\n"
            end = len(data)
        self._begun = data[end:]
        return without_secrets(data[:end].decode("utf-8", "replace")).encode()
