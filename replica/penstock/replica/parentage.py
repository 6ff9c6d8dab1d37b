"""Whether a process dies with the one that started it: asked of the kernel, which also does it
where that one was killed and could tell nobody.

The kernel watches the parent's *thread* that started the process.
"""

from __future__ import annotations

import ctypes
import os
import signal
from typing import Final

_PR_SET_PDEATHSIG: Final = 1


def die_with(parent: int) -> None:
    """Asks for SIGKILL at the end of `parent`, and dies at once if that has ended already.

    Asks the kernel first: the second step then sees a parent that ended before the first.
    """
    _ask(signal.SIGKILL)
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGKILL)


def outlive_parent() -> None:
    """Takes it back."""
    _ask(0)


def _ask(number: int) -> None:
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, number)
