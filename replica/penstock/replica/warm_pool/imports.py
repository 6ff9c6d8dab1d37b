"""What a zygote imports for its engine, and what has to hold before it may be forked."""

from __future__ import annotations

import importlib
import os
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from penstock.replica.warm_pool import process

ENGINES: Final = ("vllm", "simulated")
"""Engines that a pool may be of. Those of providers import nothing that takes long."""

_LOWEST: Final = 19
_LOOK_S: Final = 0.05


class Gone(Exception):
    """Nobody waits for the pool any more."""


@dataclass(frozen=True, slots=True)
class Imported:
    """What is told of it."""

    vllm: str = ""  # its version
    device: str = "none"  # what engines run on: "cpu", "cuda"


def variables(engine: str) -> Mapping[str, str]:
    """What the environment has to have as the program starts."""
    return {}


def imported(engine: str, wanted: Callable[[], bool]) -> Imported:
    """Imports all of an engine. Raises what goes wrong, `Gone` as soon as it is not wanted.

    In a thread of the lowest priority, which ends: a process that had lowered its own could not
    raise it again, nor could its forks.
    """
    outcome: list[Imported | BaseException] = []
    thread = threading.Thread(target=_import, args=(engine, outcome), daemon=True)
    thread.start()
    while thread.is_alive():
        thread.join(_LOOK_S)
        if not wanted():
            raise Gone
    (result,) = outcome
    if isinstance(result, BaseException):
        raise result
    if not process.is_of_one_thread():
        raise RuntimeError("what was imported has left a thread, which no fork would have")
    if process.touches_gpu():
        raise RuntimeError("what was imported has opened a GPU, which no fork could use")
    return result


def _import(engine: str, outcome: list[Imported | BaseException]) -> None:
    os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _LOWEST)
    try:
        outcome.append(_IMPORTS[engine]())
    except BaseException as error:
        outcome.append(error)


def _simulated() -> Imported:
    importlib.import_module("penstock.replica.main")
    return Imported()


_IMPORTS: Final[Mapping[str, Callable[[], Imported]]] = {"simulated": _simulated}
