"""The replica's life as a table: which state follows on what happens. Pure.

Nothing leads back but a wake: a replica that was told to drain while it loads is draining when it
has loaded.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Final


class State(enum.Enum):
    """What a replica is; only a ready one takes calls."""

    STARTING = "starting"
    READY = "ready"
    ASLEEP = "asleep"  # from when it is told to, while the calls that it has come to their end
    DRAINING = "draining"
    STOPPED = "stopped"


class Happening(enum.Enum):
    """What changes that."""

    LOADED = "loaded"  # the engine is up and warm
    SLEEP = "sleep"  # told to, and able to
    WAKE = "wake"  # as it was before its sleep, and that was checked
    DRAIN = "drain"  # asked to take no more calls, or unable to answer them
    STOP = "stop"  # the server goes


_NEXT: Final[Mapping[tuple[State, Happening], State]] = {
    (State.STARTING, Happening.LOADED): State.READY,
    (State.STARTING, Happening.DRAIN): State.DRAINING,
    (State.READY, Happening.SLEEP): State.ASLEEP,
    (State.READY, Happening.DRAIN): State.DRAINING,
    (State.ASLEEP, Happening.WAKE): State.READY,
    (State.ASLEEP, Happening.DRAIN): State.DRAINING,
}
"""What changes the state, but for a stop, which ends each of them."""


def after(state: State, happening: Happening) -> State:
    """The state that follows."""
    if happening is Happening.STOP:
        return State.STOPPED
    return _NEXT.get((state, happening), state)
