"""Whether a shadow goes on, and why it does not. Pure."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from penstock.control.errors import InvalidInput
from penstock.control.state.cluster import ClusterView
from penstock.control.state.shadow.naming import check_ends
from penstock.control.state.shadow.shadows import Shadow


class ShadowState(StrEnum):
    """A shadow in one word."""

    RUNNING = "running"
    WAITING = "waiting"  # it repeats nothing for now: its message says why
    PAUSED = "paused"
    ENDED = "ended"


class Condition(NamedTuple):
    """How a shadow is."""

    state: ShadowState
    message: str  # why it does not run; empty: it does, or somebody paused it


def condition_of(view: ClusterView, shadow: Shadow) -> Condition:
    """How this one is as the view stands."""
    if shadow.ended:
        return Condition(ShadowState.ENDED, shadow.ended)
    if shadow.paused:
        return Condition(ShadowState.PAUSED, "")
    why = missing(view, shadow) or _waits_for(view, shadow)
    return Condition(ShadowState.WAITING if why else ShadowState.RUNNING, why)


def missing(view: ClusterView, shadow: Shadow) -> str:
    """What it names that is there no more; empty: all of it is."""
    try:
        check_ends(view, shadow.spec)
    except InvalidInput as error:
        return str(error)
    return ""


def _waits_for(view: ClusterView, shadow: Shadow) -> str:
    compared = view.shadows.compared
    if compared.trouble:
        return f"the comparer {compared.trouble}"
    if not compared.address or shadow.uid not in compared.known:
        return "the comparer starts"
    if shadow.uid in compared.used_up:
        return f"it has had its {shadow.spec.usd_per_day:g} USD of today (UTC)"
    return ""
