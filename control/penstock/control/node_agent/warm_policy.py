"""When a node's warm pool is filled, given up and left alone. Pure: callers pass the time.

A pool is a zygote, which imports an engine for some seconds, and members that it forks in an
instant. Importing takes cores and memory, so it waits for everybody who waits for a replica.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from enum import StrEnum
from typing import NamedTuple

from penstock.control.errors import Code, PenstockError
from penstock.control.supervision.restart_policy import Ending, RestartPolicy, StartAgain, after_end

GIB = 1 << 30
# What a node that nobody told how many members it is to have leaves to others: a zygote of vLLM
# takes some 650 MiB, and the replica that comes next is to have room.
LEAST_MEMORY = 3 * GIB
NOT_ON_CUDA = "its vLLM is not built for CPUs, where alone the pool was tried: --warm 1 turns it on"


ZYGOTES = RestartPolicy(timedelta(seconds=1), timedelta(minutes=10))
RESTS = RestartPolicy(timedelta(minutes=1), timedelta(hours=1))


class Stage(StrEnum):
    """Where the zygote is in its life."""

    NONE = "none"
    IMPORTING = "importing"
    IDLE = "idle"  # forks members when it is told to
    FORKING = "forking"  # was told to, and the member is not there yet


TRANSITIONS: Mapping[Stage, frozenset[Stage]] = {
    Stage.NONE: frozenset({Stage.IMPORTING}),
    Stage.IMPORTING: frozenset({Stage.IDLE, Stage.NONE}),
    Stage.IDLE: frozenset({Stage.FORKING, Stage.NONE}),
    Stage.FORKING: frozenset({Stage.IDLE, Stage.NONE}),
}


class Step(StrEnum):
    """What is to be done about the pool."""

    WAIT = "wait"
    START = "start"  # a zygote
    FORK = "fork"  # the members that are lacking
    GIVE_UP = "give up"  # the zygote


class Planned(NamedTuple):
    """What is done now, and why no more."""

    step: Step
    reason: str = ""  # why there are fewer members than were asked for, for a person
    look_again: float | None = None  # monotonic seconds; None: when something has changed


@dataclass(frozen=True, slots=True)
class Patience:
    """How the pool keeps out of the way; tests shorten it."""

    # After the agent's own start, for the orders of a head.
    orders_first: timedelta = timedelta(seconds=2)
    # After a replica became ready: its first answers come first.
    answers_first: timedelta = timedelta(seconds=5)
    # A replica that is to be started within this is waited for.
    due_soon: timedelta = timedelta(seconds=2)
    import_limit: timedelta = timedelta(minutes=5)  # of a lowest priority on a busy machine
    fork_limit: timedelta = timedelta(seconds=2)
    answer_limit: timedelta = timedelta(seconds=1)  # of a member that is asked
    # A claimed process registers before it loads anything. One that has not by then does nothing.
    register_limit: timedelta = timedelta(seconds=8)
    # A claimed process that ends sooner without having been ready may be the pool's fault.
    first_seconds: timedelta = timedelta(seconds=10)
    memory_again: timedelta = timedelta(seconds=30)
    claims_in_a_row: int = 3  # that may fail before the pool rests
    zygotes: RestartPolicy = ZYGOTES
    rests: RestartPolicy = RESTS


PATIENCE = Patience()


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What else there is on the node."""

    waiting: int = 0  # members
    start_waits: bool = False  # a replica starts, or is about to
    quiet_from: float = 0.0  # monotonic seconds; whoever comes first has come by then
    foreign: bool = False  # there are replicas, and none of the pool's engine
    memory_available: int = LEAST_MEMORY  # bytes


@dataclass(frozen=True, slots=True)
class PoolState:
    """A pool as its policy sees it; times are monotonic seconds."""

    wanted: int
    stage: Stage = Stage.NONE
    since: float = 0.0  # of the stage
    least_memory: int = 0  # bytes that have to be available for a zygote
    failed_zygotes: int = 0  # in a row
    failed_claims: int = 0  # in a row
    rests: int = 0  # in a row, without a claim that came to something between them
    rest_until: float = 0.0
    why: str = ""  # of the rest

    def moved(self, stage: Stage, now: float) -> PoolState:
        """The pool with its zygote in another stage. Refuses a step that the table lacks."""
        if stage not in TRANSITIONS[self.stage]:
            raise PenstockError(
                f"a zygote cannot go from {self.stage} to {stage}", Code.IMPOSSIBLE_TRANSITION
            )
        return replace(self, stage=stage, since=now)

    def replaced(self, now: float) -> PoolState:
        """Without its zygote, by no fault of that."""
        return replace(self, stage=Stage.NONE, since=now)

    def lost(self, now: float, why: str, patience: Patience) -> PoolState:
        """The zygote came to nothing: the next one is started after a pause that grows."""
        was_good = timedelta(seconds=now - self.since) if self.stage is Stage.IDLE else timedelta(0)
        failures, pause = _pause(patience.zygotes, self.failed_zygotes, was_good)
        state = replace(self.replaced(now), failed_zygotes=failures)
        return replace(state, rest_until=now + pause, why=why)

    def claim_failed(self, now: float, why: str, patience: Patience) -> PoolState:
        """What was claimed came to nothing. After several the pool rests, without its zygote."""
        failed = self.failed_claims + 1
        if failed < patience.claims_in_a_row:
            return replace(self, failed_claims=failed)
        rests, pause = _pause(patience.rests, self.rests, timedelta(0))
        why = f"{failed} claims in a row came to nothing, the last: {why}"
        state = replace(self.replaced(now), failed_claims=0, rests=rests)
        return replace(state, rest_until=now + pause, why=why)

    def claim_worked(self) -> PoolState:
        """What was claimed is ready."""
        return replace(self, failed_claims=0, rests=0, failed_zygotes=0)


def _pause(policy: RestartPolicy, before: int, good_for: timedelta) -> tuple[int, float]:
    decision = after_end(policy, before, Ending(None, good_for))
    assert isinstance(decision, StartAgain)  # only an exit code makes it give up
    return decision.failures, decision.after.total_seconds()


def plan(pool: PoolState, around: Surroundings, now: float, patience: Patience) -> Planned:
    """What is to be done now."""
    if pool.stage is Stage.IMPORTING:
        return _in_time(pool, now, patience.import_limit, "imports the engine")
    if pool.stage is Stage.FORKING:
        return _in_time(pool, now, patience.fork_limit, "forks a member")
    if around.waiting >= pool.wanted:
        return Planned(Step.WAIT)
    if around.start_waits:
        return Planned(Step.WAIT, "a replica starts here: the pool is filled after it")
    if now < around.quiet_from:
        words = "the pool is filled in a few seconds, unless a replica is to be started"
        return Planned(Step.WAIT, words, around.quiet_from)
    return Planned(Step.FORK) if pool.stage is Stage.IDLE else _anew(pool, around, now, patience)


def _in_time(pool: PoolState, now: float, limit: timedelta, what: str) -> Planned:
    until = pool.since + limit.total_seconds()
    if now < until:
        return Planned(Step.WAIT, f"the zygote {what}", until)
    return Planned(Step.GIVE_UP, f"the zygote {what} for {now - pool.since:.0f} s: killed")


def _anew(pool: PoolState, around: Surroundings, now: float, patience: Patience) -> Planned:
    """Whether a zygote is started where there is none."""
    if now < pool.rest_until:
        return Planned(Step.WAIT, f"the pool rests: {pool.why}", pool.rest_until)
    if around.foreign and pool.least_memory:
        return Planned(Step.WAIT, "no replica of this node runs the pool's engine")
    if around.memory_available < pool.least_memory:
        free, least = around.memory_available / GIB, pool.least_memory / GIB
        words = f"{free:.1f} GiB of memory are available, a pool is started where {least:.1f} are"
        return Planned(Step.WAIT, words, now + patience.memory_again.total_seconds())
    return Planned(Step.START)


def wanted_members(asked: int | None, build: str) -> tuple[int, str]:
    """How many are to wait, and why none where none are. `asked`: None where nobody said; `build`:
    of vLLM, "cpu" or another; empty: there is none."""
    if asked is not None:
        return asked, "" if asked else "--warm 0"
    if not build:
        return 0, "vLLM is not installed on this machine"
    return (1, "") if build == "cpu" else (0, NOT_ON_CUDA)
