"""What a replica logs, whatever a library does to logging."""

from __future__ import annotations

import subprocess
import sys

_PROGRAM = """
import logging
from penstock.replica.logs import configure_logs
configure_logs("r1", "info")
logging.getLogger().setLevel(logging.ERROR)
logging.getLogger("penstock.replica.main").info("ready")
logging.getLogger("penstock.replica.main").debug("details")
logging.getLogger("library").info("chatter")
"""


def test_our_lines_are_written_though_a_library_sets_the_roots_level() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", _PROGRAM], capture_output=True, text=True, timeout=60
    )
    (line,) = ended.stderr.splitlines()
    assert '"message": "ready"' in line
