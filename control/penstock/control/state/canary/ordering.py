"""What operators do with a canary: pause, resume, promote. Pure. Each raises `conflict` where the
canary's state does not take it."""

from __future__ import annotations

from dataclasses import replace

from penstock.control.errors import Code, PenstockError
from penstock.control.state.canary.canary import Canary, CanaryState


def paused(canary: Canary) -> Canary:
    """It stays at its step until it is resumed; a guard still rolls it back."""
    check_active(canary, "paused")
    if canary.promoting:
        raise PenstockError(
            f"canary {canary.spec.name!r} is being promoted: abort it, or wait", Code.CONFLICT
        )
    return replace(canary, state=CanaryState.PAUSED, why="")


def resumed(canary: Canary) -> Canary:
    """It goes on from its step; one that was not paused is as it was."""
    check_active(canary, "resumed")
    if canary.state is not CanaryState.PAUSED:
        return canary
    return replace(canary, state=CanaryState.RUNNING)


def promoted(canary: Canary) -> Canary:
    """The candidate takes the target's place, whatever is missing for the next step."""
    check_active(canary, "promoted")
    return replace(canary, state=CanaryState.RUNNING, why="", promoting=True)


def check_active(canary: Canary, what: str) -> None:
    """Raises `conflict` for one that waits, or is over."""
    if not canary.is_active:
        said = f"is {canary.state}".replace("_", " ")
        advice = (
            "it begins with the next revision of its target"
            if canary.state is CanaryState.WAITING
            else "create another one"
        )
        raise PenstockError(
            f"canary {canary.spec.name!r} {said} and cannot be {what}: {advice}", Code.CONFLICT
        )
