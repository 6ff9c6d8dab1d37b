"""Engine processes forked from one that has imported vLLM, for tests that start engines in their
own process: two seconds of CPU each instead of eight.

Each is what a replica forks for itself (`preload.py`), but for who forks it: a process of tests has
threads. So it dies with multiprocessing's fork server, which dies with the tests.
"""

from __future__ import annotations

import multiprocessing
import os
import tempfile
from collections.abc import Callable
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any

from penstock.replica import parentage
from penstock.replica.vllm.start import engine_process
from penstock.replica.vllm.start.preload import ForkedEngine

_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(["tests.fakes.engine_imports"])


def forked(target: Callable[..., None], *words: Any) -> BaseProcess:
    """A process that has imported vLLM and runs this."""
    process: BaseProcess = _CONTEXT.Process(target=target, args=words)
    process.start()
    return process


class NurseryEngine(ForkedEngine):
    """A process that has imported vLLM and waits to be an engine."""

    def __init__(self) -> None:
        self.files = tempfile.TemporaryDirectory(prefix="penstock-vllm-")
        receiver, self._orders = _CONTEXT.Pipe(duplex=False)
        name = engine_process.TITLE
        self.process = _CONTEXT.Process(target=_wait_for_work, args=(receiver,), name=name)
        self.process.start()
        receiver.close()


def _wait_for_work(orders: Connection) -> None:
    parentage.die_with(os.getppid())
    engine_process.die_with_parent = lambda: None
    engine_process.wait_for_work(orders)
