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

_PR_SET_PDEATHSIG: Final = 1


def die_with(parent: int) -> None:
    """Asks for SIGKILL when the parent dies, and dies at once if it has died already."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGKILL)


def run_engine_core(*args: Any, **kwargs: Any) -> None:
    """Stands in for vLLM's own target."""
    from vllm.v1.engine.core import EngineCoreProc

    try:
        EngineCoreProc.run_engine_core(*args, **kwargs)
    except Exception:
        # vLLM has logged it already; multiprocessing would print it once more.
        raise SystemExit(1) from None


_starter = multiprocessing.parent_process()
if _starter is not None and _starter.pid is not None:
    die_with(_starter.pid)

__all__ = ["die_with", "run_engine_core"]
