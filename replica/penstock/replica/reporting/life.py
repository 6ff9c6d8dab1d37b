"""The replica's life as a table: which state follows on what happens. Pure.

Nothing leads back: a replica that was told to drain while it loads is draining when it has loaded.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Final


class State(enum.Enum):
    """What a replica is; only a ready one takes calls."""

    STARTING = "starting"
    READY = "ready"
    DRAINING = "draining"
    STOPPED = "stopped"


class Happening(enum.Enum):
    """What changes that."""

    LOADED = "loaded"  # the engine is up and warm
    DRAIN = "drain"  # asked to take no more calls, or unable to answer them
    STOP = "stop"  # the server goes


_NEXT: Final[Mapping[tuple[State, Happening], State]] = {
    (State.STARTING, Happening.LOADED): State.READY,
    (State.STARTING, Happening.DRAIN): State.DRAINING,
    (State.STARTING, Happening.STOP): State.STOPPED,
    (State.READY, Happening.LOADED): State.READY,
    (State.READY, Happening.DRAIN): State.DRAINING,
    (State.READY, Happening.STOP): State.STOPPED,
    (State.DRAINING, Happening.LOADED): State.DRAINING,
    (State.DRAINING, Happening.DRAIN): State.DRAINING,
    (State.DRAINING, Happening.STOP): State.STOPPED,
    (State.STOPPED, Happening.LOADED): State.STOPPED,
    (State.STOPPED, Happening.DRAIN): State.STOPPED,
    (State.STOPPED, Happening.STOP): State.STOPPED,
}


def after(state: State, happening: Happening) -> State:
    """The state that follows."""
    return _NEXT[state, happening]
