"""A name inside vLLM that the replica reaches for, as a value: the lists beside this are data."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Stage(Enum):
    """When a replica needs it, and so checks it: as late as it is imported in any case."""

    ENGINE = "engine"  # before it starts the engine's process
    APP = "app"  # before it builds vLLM's app, while the engine loads
    MISTRAL = "mistral"  # when the app is built, of a model whose tools' calls have Mistral's names
    PROCESS = "process"  # in each of the engine's processes
    WORKER = "worker"  # in the engine's process on a CPU
    POOL = "pool"  # in a process that others are forked of, by a warm pool
    WRITING = "writing"  # when files for other rooms are written; not in a replica


@dataclass(frozen=True, slots=True)
class Touch:
    """`names`: what has to be there. `users`: the files that need it. `until`: what would make it
    unnecessary."""

    stage: Stage
    names: tuple[str, ...]
    users: tuple[str, ...]
    why: str
    until: str
