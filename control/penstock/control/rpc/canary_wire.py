"""What gateways count of canaries: messages of routes.proto to values of `state/`.

A report that no gateway of ours could send is left out: its gateway then counts as one that has
told nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Final

from penstock.control.declared.messages import value_of
from penstock.control.state.canary.canary import MOST_CANARIES
from penstock.control.state.canary.counts import (
    BINS,
    ArmCounts,
    Bins,
    Counts,
    StepCounts,
    Tally,
)
from penstock.v1 import canary_pb2

MOST_REASONS: Final = 32
LONGEST_REASON: Final = 64
LONGEST_UID: Final = 64
OTHER: Final = "other"
LARGEST: Final = 1 << 53  # what JSON keeps exactly


class _Nonsense(ValueError):
    """Counts that cannot be."""


def step_counts(messages: Iterable[canary_pb2.CanaryReport]) -> tuple[StepCounts, ...]:
    """What one gateway tells."""
    found = []
    for message in list(messages)[:MOST_CANARIES]:
        try:
            counts = Counts(_arm(message.stable), _arm(message.candidate))
        except _Nonsense:
            continue
        if len(message.uid) <= LONGEST_UID:
            found.append(StepCounts(message.uid, message.step, counts))
    return tuple(found)


def _arm(message: canary_pb2.CanaryArm) -> ArmCounts:
    arm = value_of(
        ArmCounts,
        message,
        errors=_tally(message.errors),
        finishes=_tally(message.finishes),
        ttft=_bins(message.ttft),
        between_tokens=_bins(message.between_tokens),
        total=_bins(message.total),
    )
    _check(arm.bad_sessions, arm.sessions)
    _check(arm.saved_sessions, arm.bad_sessions)
    _check(arm.answered_sessions, arm.sessions)
    _check(arm.bad_finishes, arm.answered_sessions)
    for row in (arm.ttft, arm.between_tokens, arm.total):
        _check(sum(count for _, count in row), arm.answered_sessions)
    for number in (arm.sessions, arm.requests, arm.prompt_tokens, arm.completion_tokens):
        _check(number, LARGEST)
    _check(max(arm.saved, arm.refused), LARGEST)
    return arm


def _tally(messages: Iterable[canary_pb2.CanaryCount]) -> Tally:
    """By reason; those that are no short words, or too many, together."""
    found: dict[str, int] = {}
    for each in messages:
        said = each.reason
        is_word = len(said) <= LONGEST_REASON and said.isascii() and said.isprintable()
        reason = said if is_word and (said in found or len(found) < MOST_REASONS) else OTHER
        found[reason] = found.get(reason, 0) + each.count
    _check(sum(found.values()), LARGEST)
    return tuple(sorted(found.items()))


def _bins(message: canary_pb2.CanaryTimes) -> Bins:
    bins, counts = list(message.bins), list(message.counts)
    if len(bins) != len(counts) or not _grow(bins) or (bins and bins[-1] >= BINS):
        raise _Nonsense
    return tuple(zip(bins, counts, strict=True))


def _grow(row: list[int]) -> bool:
    """Whether all are there once, sorted."""
    return all(one < other for one, other in pairwise(row))


def _check(count: int, most: int) -> None:
    if count > most:
        raise _Nonsense
