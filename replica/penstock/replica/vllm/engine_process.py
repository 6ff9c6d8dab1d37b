"""What runs first in the processes that vLLM starts: they die with the process that started them.

A replica that is killed with -9 cannot stop its engine, and vLLM's engine outlives it, holding the
memory. So each engine process asks the kernel for SIGKILL at its parent's death, as soon as this
module is imported in it: that is before vLLM is, since spawn unpickles the process's target, which
lies here, before the target's arguments. Light on purpose: no vLLM at the top.

The kernel watches the parent's *thread* that started the process; `launch.py` keeps it alive.
Touch points: `EngineCoreProc.run_engine_core`, the target of the engine's process, and
`VllmConfig.logging_config.pylogging_config_file`, by which it sets up its log.
"""

from __future__ import annotations

import ctypes
import faulthandler
import multiprocessing
import os
import signal
from typing import Any, Final

PARENT: Final = "PENSTOCK_ENGINE_PARENT"
"""The environment variable with the pid of the process that starts the engine's process."""

FAULTS: Final = "PENSTOCK_ENGINE_FAULTS"
"""The environment variable with the file that tells where a signal ended the engine's process."""

_PR_SET_PDEATHSIG: Final = 1


def die_with_parent() -> None:
    """Asks for SIGKILL at the parent's death, and dies at once if the parent is gone already.

    For processes that multiprocessing started; does nothing in any other.
    """
    parent = multiprocessing.parent_process()
    if parent is None or parent.pid is None:
        return
    _die_with(parent.pid)


def write_faults() -> None:
    """From now on a signal that ends this process leaves the threads' tracebacks in a file.

    They run on a signal stack of their own, so it comes after `settle_amx`. Processes that nobody
    told of a file write none.
    """
    if file := os.environ.get(FAULTS):
        # faulthandler keeps the file, which stays open for as long as the process lives.
        faulthandler.enable(open(file, "ab"), all_threads=True)  # noqa: SIM115


def run_engine_core(*args: Any, **kwargs: Any) -> None:
    """Stands in for vLLM's own target."""
    die_with_parent()
    os.environ.pop(PARENT, None)  # true of this process only, not of those it starts
    from vllm.v1.engine.core import EngineCoreProc

    # The config was made where the replica runs, with that process's log file in it.
    log_config = os.environ["VLLM_LOGGING_CONFIG_PATH"]
    kwargs["vllm_config"].logging_config.pylogging_config_file = log_config
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

__all__ = ["FAULTS", "PARENT", "die_with_parent", "run_engine_core", "write_faults"]
