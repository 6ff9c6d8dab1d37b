"""Leave to use AMX tiles, asked of the kernel for the process in which vLLM's worker runs.

vLLM's CPU attention uses the tiles wherever the CPU has them; Linux lets a process do so only after
it has asked, and ends it by SIGILL otherwise. torch.compile's look at the CPU asks by the way, but
a replica's CPU engine compiles nothing. The leave holds for all threads and passes to forked
children, not through exec. The kernel refuses it while a thread has a small alternate signal stack,
so it is asked for before anything that installs one.
"""

from __future__ import annotations

import logging
from typing import Protocol

log = logging.getLogger(__name__)


class TorchCpu(Protocol):
    """The part of `torch.cpu` that knows of AMX."""

    def _is_amx_tile_supported(self) -> bool: ...

    def _init_amx(self) -> bool: ...


def settle_amx(cpu: TorchCpu) -> None:
    """After it vLLM's choice of kernels, which asks `cpu`, is one that this process may run."""
    if not cpu._is_amx_tile_supported() or cpu._init_amx():
        return
    log.warning("the kernel does not let this process use AMX, so the engine does without it")
    cpu._is_amx_tile_supported = _no  # type: ignore[method-assign]


def _no() -> bool:
    return False
