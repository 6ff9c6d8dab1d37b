"""When what happened to a request. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from penstock.control.state.observe.record import (
    Attempt,
    Look,
    Pick,
    QueueTurn,
    RequestRecord,
    Stay,
    Way,
)
from penstock.control.state.observe.words import CALLS, VERDICTS, WAYS, counted, span

WORTH_TELLING: Final = 1000  # microseconds of a wait


@dataclass(frozen=True, slots=True)
class Moment:
    """Something that happened to a request."""

    at_us: int = field(metadata={"description": "microseconds since it was read"})
    text: str


def time_line(it: RequestRecord) -> tuple[Moment, ...]:
    """In the order in which it happened."""
    return tuple(sorted(_moments(it), key=lambda each: each.at_us))


def _moments(it: RequestRecord) -> Iterator[Moment]:
    yield Moment(0, "it has been read")
    ends = [*(stay.entered_us for stay in it.stays[1:]), it.duration_us]
    for stay, until in zip(it.stays, ends, strict=False):
        sent = [each.sent_us for each in it.attempts if stay.entered_us <= each.sent_us <= until]
        yield from _stay(stay, until, sent)
    if (left_out := it.attempts_made - len(it.attempts)) > 0 and it.attempts:
        earlier = f"{counted(left_out, 'call')} to replicas came before, and are not kept"
        yield Moment(it.attempts[0].sent_us, earlier)
    for attempt in it.attempts:
        yield from _attempt(attempt)
    if it.first_byte_us:
        yield Moment(it.first_byte_us, "its client is given the first byte of the answer")
    for gap in it.gaps:
        yield Moment(gap.at_us, f"its client is given nothing for {gap.ms:,} ms")
    ending = it.drop_reason or it.error_code
    yield Moment(it.duration_us, f"it ends: {it.outcome}{f', {ending}' if ending else ''}")


def _stay(stay: Stay, until: int, sent: Sequence[int]) -> Iterator[Moment]:
    """`sent`: when it was sent to replicas from there."""
    at = stay.entered_us
    if stay.passed_over:
        yield Moment(at, f"{stay.deployment} is passed over: {stay.left_for}")
        return
    back = " back" if stay.way is Way.RETURNED else ""
    yield Moment(at, f"it comes{back} to {stay.deployment}: {WAYS[stay.way]}")
    if turn := stay.turn:
        yield Moment(at, f"{stay.deployment} has {_load(turn)}")
        yield Moment(at, _place(turn, was_sent=bool(sent)))
        if turn.waited_us >= WORTH_TELLING:
            # Of all calls together: the first by which it can have waited so long.
            calls = (each for each in sent if each - at >= turn.waited_us)
            yield Moment(next(calls, until), f"it has waited {span(turn.waited_us)}")
    if stay.left_for:
        yield Moment(until, f"{stay.arm or stay.deployment} could not answer it: {stay.left_for}")


def _load(turn: QueueTurn) -> str:
    """How the deployment stood."""
    told = (
        f"{counted(turn.ready, 'replica')} ready, {turn.with_room:,} with a free place;"
        f" {counted(turn.running, 'request')} under way"
    )
    if turn.place or turn.ahead:
        told += (
            f"; waiting: {turn.ahead_high:,} of high, {turn.ahead_normal:,} of normal,"
            f" {turn.ahead_low:,} of low priority"
        )
    return told


def _place(turn: QueueTurn, *, was_sent: bool) -> str:
    """What it was given, and how long a wait was expected."""
    if not turn.place and was_sent:
        return "it has a place at once"
    priority = turn.priority or "normal"
    told = f"it waits at place {turn.place:,} of the queue" if turn.place else "it gets no place"
    told += f", with {priority} priority"
    if turn.estimated_wait_ms or turn.work_before:
        pace = f", done at {turn.work_a_second:,} a second" if turn.work_a_second else ""
        told += (
            f"; estimated wait {turn.estimated_wait_ms:,} ms: token work of"
            f" {turn.work_before:,} goes before it{pace}"
        )
    return told


def _attempt(attempt: Attempt) -> Iterator[Moment]:
    if attempt.pick:
        yield Moment(attempt.sent_us, _pick(attempt.pick))
    why = CALLS.get(attempt.reason, attempt.reason)
    yield Moment(attempt.sent_us, f"it is sent to {attempt.replica}: {why}")
    if attempt.first_us:
        yield Moment(attempt.first_us, f"{attempt.replica} gives the first of its answer")
    if attempt.ended_us:
        ended = f"fails: {attempt.error}" if attempt.error else "is done"
        yield Moment(attempt.ended_us, f"{attempt.replica} {ended}{_engine(attempt)}")


def _pick(pick: Pick) -> str:
    looked = [_look(each) for each in pick.looks]
    looked += [f"{pick.more:,} more"] if pick.more else []
    return f"{pick.policy} chooses: {'; '.join(looked)}" if looked else f"{pick.policy} chooses"


def _look(look: Look) -> str:
    said = VERDICTS.get(look.verdict, look.verdict)
    return f"{look.replica} with {counted(look.load, 'request')} is {said}"


def _engine(attempt: Attempt) -> str:
    """What the engine says of its time."""
    parts = [
        f"{name} {span(us)}"
        for name, us in (
            ("queued", attempt.queued_us),
            ("prefill", attempt.prefill_us),
            ("decode", attempt.decode_us),
        )
        if us
    ]
    parts += [f"{attempt.cached_tokens:,} of the prompt cached"] if attempt.cached_tokens else []
    return f" (its engine says: {', '.join(parts)})" if parts else ""
