"""What a zygote imports for its engine, and what has to hold before it may be forked."""

from __future__ import annotations

import importlib
import os
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from penstock.replica.settings import Settings
from penstock.replica.warm_pool import process

ENGINES: Final = ("vllm", "simulated")
"""Engines that a pool may be of. Those of providers import nothing that takes long."""

_LOWEST: Final = 19
_LOOK_S: Final = 0.05


class Gone(Exception):
    """Nobody waits for the pool any more."""


@dataclass(frozen=True, slots=True)
class Imported:
    """An engine's code in this process."""

    engine: str
    vllm: str = ""  # its version
    device: str = "none"  # what engines run on: "cpu", "cuda"
    # Why a fork cannot be a replica of these settings; empty: it can. Raises `CannotLoad`.
    why_cold: Callable[[Settings], str] = lambda settings: ""
    untouched: Callable[[], bool] = lambda: True  # whether no GPU is in use, in the engine's words

    def check(self) -> None:
        """Raises `RuntimeError` if a fork of this process would not be sound."""
        if not process.is_of_one_thread():
            raise RuntimeError("what was imported has left a thread, which no fork would have")
        if process.holds_gpu() or not self.untouched():
            raise RuntimeError("what was imported has opened a GPU, which no fork could use")


def variables(engine: str) -> Mapping[str, str]:
    """What the environment has to have as the program starts."""
    if engine != "vllm":
        return {}
    from penstock.replica.vllm.start import warm

    return warm.variables()


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
    result.check()
    return result


def _import(engine: str, outcome: list[Imported | BaseException]) -> None:
    os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _LOWEST)
    try:
        outcome.append(_IMPORTS[engine]())
    except BaseException as error:
        outcome.append(error)


def _simulated() -> Imported:
    importlib.import_module("penstock.replica.warm_pool.member")
    return Imported("simulated")


def _vllm() -> Imported:
    importlib.import_module("penstock.replica.warm_pool.member")
    importlib.import_module("penstock.replica.vllm.engine")
    from penstock.replica.vllm.start import warm

    found = warm.prepare()

    def why_cold(settings: Settings) -> str:
        return warm.why_cold(
            settings.model,
            settings.engine_args,
            found,
            allow_model_code=settings.allow_model_code,
        )

    return Imported("vllm", found.vllm, found.device, why_cold, warm.is_untouched)


_IMPORTS: Final[Mapping[str, Callable[[], Imported]]] = {"simulated": _simulated, "vllm": _vllm}
