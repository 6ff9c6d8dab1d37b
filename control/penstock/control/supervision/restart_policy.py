"""What to do when a replica's process has ended. Pure: no clock, no processes."""

from __future__ import annotations

import signal
from dataclasses import dataclass
from datetime import timedelta

# Exit codes that `penstock.replica` promises.
ENGINE_DIED = 70
ENGINE_HUNG = 71
CANNOT_LOAD = 72
COULD_NOT_REGISTER = 73
INTERNAL = 74
WOKE_WRONG = 75

MEANINGS = {
    0: "stopped although nobody asked it to",
    ENGINE_DIED: "its engine died",
    ENGINE_HUNG: "its engine hung",
    CANNOT_LOAD: "it cannot load its model or settings",
    COULD_NOT_REGISTER: "it could not register with the node agent",
    INTERNAL: "it failed by a fault of its own",
    WOKE_WRONG: "it did not wake as it had gone to sleep",
}


@dataclass(frozen=True, slots=True)
class RestartPolicy:
    """How eagerly ended replicas are started again."""

    first_delay: timedelta = timedelta(milliseconds=200)  # after the first failure
    longest_delay: timedelta = timedelta(seconds=30)  # raise if restarts themselves hurt the node
    healthy_after: timedelta = timedelta(seconds=60)  # ready this long: earlier failures forgotten
    crash_loop_after: int = 5  # failures in a row from which on it is called a crash loop


OWN_PROCESSES = RestartPolicy(
    first_delay=timedelta(milliseconds=100),
    longest_delay=timedelta(seconds=5),
    # One that ran for so long did not end because of how it was started.
    healthy_after=timedelta(seconds=10),
)
"""Of Penstock's own: gateway, comparer, head and agent of `penstock serve`."""


@dataclass(frozen=True, slots=True)
class Ending:
    """How one process of a replica ended."""

    exit_code: int | None  # -signal if killed; None: not known, as for an adopted process
    ready_for: timedelta  # how long it had been ready; zero if it never was


@dataclass(frozen=True, slots=True)
class StartAgain:
    """Start the replica again after a pause."""

    after: timedelta
    failures: int  # in a row, this one included
    crash_loop: bool


@dataclass(frozen=True, slots=True)
class GiveUp:
    """Starting it again would end the same way."""


Decision = StartAgain | GiveUp


def after_end(policy: RestartPolicy, earlier_failures: int, ending: Ending) -> Decision:
    """Decides what follows an end that nobody asked for."""
    if ending.exit_code == CANNOT_LOAD:
        return GiveUp()
    healthy = ending.ready_for >= policy.healthy_after
    failures = 1 if healthy else earlier_failures + 1
    doublings = min(failures - 1, 32)
    return StartAgain(
        after=min(policy.longest_delay, policy.first_delay * 2**doublings),
        failures=failures,
        crash_loop=failures >= policy.crash_loop_after,
    )


def describe(exit_code: int | None) -> str:
    """An end in words, to follow "the replica"."""
    if exit_code is None:
        return "ended; its exit code is not known, since what had started it is gone"
    if exit_code < 0:
        return f"was killed by {_signal_name(-exit_code)}"
    meaning = MEANINGS.get(exit_code)
    return f"exited with code {exit_code}" + (f": {meaning}" if meaning else "")


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
