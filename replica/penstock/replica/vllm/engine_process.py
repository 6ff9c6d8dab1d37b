"""What runs first in the processes that vLLM starts: they die with the process that started them.

A replica that is killed with -9 cannot stop its engine, and vLLM's engine outlives it, holding the
memory. So each engine process asks the kernel for SIGKILL at its parent's death, as soon as this
module is imported in it: that is before vLLM is, since spawn unpickles the process's target, which
lies here, before the target's arguments. Light on purpose: no vLLM at the top.

The kernel watches the parent's *thread* that started the process; `launch.py` keeps it alive.
Touch point: `EngineCoreProc.run_engine_core`, the target of the engine's process.
"""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import signal
from typing import Any, Final

PARENT: Final = "PENSTOCK_ENGINE_PARENT"
"""The environment variable with the pid of the process that starts the engine's process."""

_PR_SET_PDEATHSIG: Final = 1


def die_with_parent() -> None:
    """Asks for SIGKILL at the parent's death, and dies at once if the parent is gone already.

    For processes that multiprocessing started; does nothing in any other.
    """
    parent = multiprocessing.parent_process()
    if parent is None or parent.pid is None:
        return
    _die_with(parent.pid)


def run_engine_core(*args: Any, **kwargs: Any) -> None:
    """Stands in for vLLM's own target."""
    die_with_parent()
    os.environ.pop(PARENT, None)  # true of this process only, not of those it starts
    from vllm.v1.engine.core import EngineCoreProc

    try:
        EngineCoreProc.run_engine_core(*args, **kwargs)
    except Exception:
        # vLLM has logged it already; multiprocessing would print it once more.
        raise SystemExit(1) from None


def _die_with(parent: int) -> None:
    """Asks the kernel first: the second step then sees a parent that ended before the first."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGKILL)


# True while spawn unpickles what the process is to do, some seconds before it does it;
# multiprocessing does not yet know the parent then.
if getattr(multiprocessing.current_process(), "_inheriting", False) and PARENT in os.environ:
    _die_with(int(os.environ[PARENT]))

__all__ = ["PARENT", "die_with_parent", "run_engine_core"]
