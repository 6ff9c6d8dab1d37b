"""What words of a record mean, and how its numbers are said. Pure.

A word that is not here is of a newer gateway: it is shown as it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from penstock.control.state.observe.record import Way

OUTCOMES: Final[Mapping[str, str]] = {
    "succeeded": "was answered",
    "failed": "failed",
    "rejected": "was refused",
    "invalid": "could not be taken",
}
WAYS: Final[Mapping[Way, str]] = {
    Way.NAMED: "its client asked for it",
    Way.CANARY: "it is in the share of a canary of the deployment that was asked for",
    Way.RETURNED: "neither its canary nor a rung could answer it",
    Way.RUNG: "a rung of the ladder of the deployment that was asked for",
}
VERDICTS: Final[Mapping[str, str]] = {
    "taken": "taken",
    "busier": "no less busy",
    "full": "full",
    "not_ready": "not ready",
    "doubted": "doubted: this gateway sends it nothing for now",
    "tried": "left out: it was tried before, or runs another that engines may die of",
    "unequal": "unequal: the answer can not go on there",
    "other_revision": "of another revision than the session or the arm",
    "no_slot": "without a slot for the adapter",
    "draining": "draining",
    "prefill": "kept for the prefill of others",
}
CALLS: Final[Mapping[str, str]] = {
    "first": "the first call",
    "failover": "failover: the call before failed, and its client had nothing of it",
    "again": "again: the call before broke, and its client had nothing of it: it is made anew",
    "resume:kill": "resume:kill: its replica was killed, the answer is to go on here",
    "resume:hang": "resume:hang: its replica hung, the answer is to go on here",
    "resume:crash": "resume:crash: its engine crashed, the answer is to go on here",
    "resume:lost": "resume:lost: its replica was lost, the answer is to go on here",
    "resume:hand_over": "resume:hand_over: its replica leaves, the answer is to go on here",
}
PROGRAMS: Final[Mapping[str, str]] = {
    "decided": "decided: it said where the request goes",
    "own_policy": "own_policy: it left the choice to the gateway",
    "no_place": "no_place: the replica that it named had none, so it stayed where it had one",
    "slow": "slow: it did not say in time, so the gateway's own policy did",
    "raised": "raised: it ended with an exception, so the gateway's own policy chose",
    "nonsense": "nonsense: it broke its word, so the gateway's own policy chose",
    "dead": "dead: its process was not reached, so the gateway's own policy chose",
    "unknown_program": "unknown_program: its process does not run it, so the gateway chose",
    "abandoned": "abandoned: the request was over before it had said",
}
PHASES: Final = ("parse", "resolve", "admit", "select", "open", "stream", "settle")


def span(us: int) -> str:
    """A time, to three digits."""
    if us < 1_000_000:
        return f"{us / 1000:.3g} ms" if us < 999_500 else "1 s"
    seconds = us / 1_000_000
    return f"{seconds:.3g} s" if seconds < 1000 else f"{seconds:,.0f} s"


def counted(number: int, one: str, many: str = "") -> str:
    """So many."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"
