"""What a process that was forked with vLLM imported may still become, as a table: all but what
stands in it. Pure.

All else of an engine is made after the fork in the same way as in a process that was started. What
it does with CUDA is made after the fork, too; no GPU was there to show it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from penstock.replica.vllm.start.arguments import MODEL_CODE, UNIPROC

_COMPILES: Final = "it may compile, and the pool's processes are of those that do not"


@dataclass(frozen=True, slots=True)
class Imported:
    """What the process has imported."""

    vllm: str  # its version
    device: str  # what its engines run on, in vLLM's words


@dataclass(frozen=True, slots=True)
class Rule:
    """A setting that needs a process which is started for it, and why."""

    setting: str
    needs: Callable[[str], object]  # by its value; true: it does
    why: str
    on: tuple[str, ...] = ("cpu", "cuda")


def _any(value: str) -> bool:
    return True


def _true(value: str) -> bool:
    return value.lower() in ("", "1", "true")


def _false(value: str) -> bool:
    return not _true(value)


def _many(value: str) -> bool:
    return value != "1"


def _foreign(value: str) -> bool:
    return value not in ("mp", "uni", UNIPROC)


RULES: Final = (
    Rule("enforce_eager", _false, _COMPILES, on=("cpu",)),
    Rule("no_enforce_eager", _true, _COMPILES, on=("cpu",)),
    Rule("compilation_config", _any, _COMPILES, on=("cpu",)),
    Rule("mm_tensor_ipc", _any, "it wants a queue that is made before its engine's process"),
    Rule("numa_bind", _true, "an engine's process is bound to memory as its program starts"),
    Rule("pipeline_parallel_size", _many, "nobody has tried stages in forked processes"),
    Rule("nnodes", _many, "nobody has tried forked processes on several nodes"),
    Rule("distributed_executor_backend", _foreign, "this executor starts its own processes"),
    *(
        Rule(
            name, re.compile(pattern).search, "it runs code that may count on a process of its own"
        )
        for name, pattern in MODEL_CODE.items()
        if name not in ("compilation_config", "distributed_executor_backend")
    ),
)
"""The table."""


def why_cold(engine_args: Mapping[str, str], imported: Imported, installed: str) -> str:
    """Why such an engine cannot be made of the process; empty: it can. `installed`: the version of
    vLLM that a process would import which is started now."""
    if installed != imported.vllm:
        return f"vLLM {installed} is installed, the pool has imported {imported.vllm}"
    given = {key.replace("-", "_"): value for key, value in engine_args.items()}
    for rule in RULES:
        value = given.get(rule.setting)
        if value is not None and imported.device in rule.on and rule.needs(value):
            return f"engine setting {rule.setting}: {rule.why}"
    return ""
