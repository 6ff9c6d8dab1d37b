"""What runs first in an engine's processes: they die with the process that started them.

A replica that is killed with -9 cannot stop its engine, and vLLM's engine outlives it, holding the
memory. So each engine process asks the kernel for SIGKILL at its parent's death, as soon as this
module is imported in it: that is before vLLM is, since spawn unpickles the process's target, which
lies here, before the target's arguments. Light on purpose: no vLLM at the top.

The kernel watches the parent's *thread* that started the process; `launch.py` keeps it alive. A
process that was forked (`preload.py`) is told what to do by a pipe, and begins here, too.
"""

from __future__ import annotations

import faulthandler
import gc
import multiprocessing
import os
import signal
import warnings
from collections.abc import Mapping
from multiprocessing.connection import Connection
from typing import Any, Final

from penstock.replica import parentage

PARENT: Final = "PENSTOCK_ENGINE_PARENT"
"""The environment variable with the pid of the process that starts the engine's process."""

FAULTS: Final = "PENSTOCK_ENGINE_FAULTS"
"""The environment variable with the file that tells where a signal ended the engine's process."""

_WORKERS: Final = "VLLM_WORKER_MULTIPROC_METHOD"

TITLE: Final = "EngineCore"
"""What vLLM calls the engine's process, in its title and in what it says of its end."""


def die_with_parent() -> None:
    """Asks for SIGKILL at the parent's death, and dies at once if the parent is gone already.

    For processes that multiprocessing started; does nothing in any other.
    """
    parent = multiprocessing.parent_process()
    if parent is None or parent.pid is None:
        return
    parentage.die_with(parent.pid)


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

    from penstock.replica.vllm.resume import scheduling

    # The config was made where the replica runs, with that process's log file in it.
    log_config = os.environ["VLLM_LOGGING_CONFIG_PATH"]
    kwargs["vllm_config"].logging_config.pylogging_config_file = log_config
    scheduling.install()
    try:
        EngineCoreProc.run_engine_core(*args, **kwargs)
    except Exception:
        # vLLM has logged it already; multiprocessing would print it once more.
        raise SystemExit(1) from None


def wait_for_work(orders: Connection) -> None:
    """The life of a forked engine process: it is told of vLLM's arguments once they are known.

    The forking process has imported vLLM; what only an engine needs is imported here meanwhile.
    """
    die_with_parent()
    # At once: by its command line, a replica's, a node agent would take it for one.
    from vllm.utils.system_utils import set_process_title

    from penstock.replica.vllm.start import imports

    set_process_title(TITLE)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    # A Ctrl-C at a terminal comes to the replica, too, which ends this process if it ends.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # What PYTHONWARNINGS says to a new interpreter (`environment.py`).
    for kind in (FutureWarning, UserWarning, DeprecationWarning):
        warnings.simplefilter("ignore", kind)
    imports.worker()
    environment, work = _received(orders)
    os.environ.clear()
    os.environ.update(environment)
    os.environ[_WORKERS] = "fork"  # no other thread of Python's is here before they are
    signal.signal(signal.SIGINT, signal.default_int_handler)
    gc.enable()
    run_engine_core(**work)


def is_forked() -> bool:
    """Whether this process, an engine's, was not started but forked."""
    return os.environ.get(_WORKERS) == "fork"


def _received(orders: Connection) -> tuple[Mapping[str, str], Mapping[str, Any]]:
    """The environment and vLLM's arguments; ends the process if there will never be any."""
    with orders:
        try:
            environment, work = orders.recv()
        except EOFError:
            raise SystemExit(0) from None
    return environment, work


# True while spawn unpickles what the process is to do, some seconds before it does it;
# multiprocessing does not yet know the parent then.
if getattr(multiprocessing.current_process(), "_inheriting", False) and PARENT in os.environ:
    parentage.die_with(int(os.environ[PARENT]))
