"""What a replica's log says of its end."""

from __future__ import annotations

import re
from pathlib import Path

from penstock.control.log_files import tail

ERROR_PREFIX = "penstock-replica: error: "
# How Python ends a traceback: "ValueError: ..." or "package.module.SomeError: ...".
EXCEPTION = re.compile(r"[A-Za-z_][\w.]*(Error|Exception|Interrupt|Exit)(: |$)")
LONGEST_ERROR = 500  # characters


def last_error(path: Path) -> str:
    """Why the process says that it ended, in one line; empty if it says nothing.

    That is its own last `penstock-replica: error:` line. A process that died without one has at
    best a traceback, whose last line names the exception.
    """
    lines = tail(path, 1000)
    for line in reversed(lines):
        if line.startswith(ERROR_PREFIX):
            return line.removeprefix(ERROR_PREFIX)[:LONGEST_ERROR]
    if lines and EXCEPTION.match(lines[-1]):
        return lines[-1][:LONGEST_ERROR]
    return ""
