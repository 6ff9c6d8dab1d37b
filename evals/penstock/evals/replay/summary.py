"""What became of a replay: of each request, in sum, and beside what was recorded. Pure."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from penstock.evals.comparison.recording import Answered, Header, Recorded
from penstock.evals.comparison.replies import error_of
from penstock.evals.comparison.text import cell
from penstock.evals.endpoint import Posted
from penstock.evals.replay.replies import AnyReply, Said


class Ending(StrEnum):
    """How a request ended."""

    WHOLE = "whole"  # an answer, all of it
    REFUSED = "refused"  # a status that is not 200
    ERROR_IN_STREAM = "error in the stream"
    TRUNCATED = "truncated"  # it ended before it was whole, and did not say why
    NO_ANSWER = "no answer"  # nothing was heard, or not in time


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one request."""

    id: str
    path: str
    model: str
    at: float  # seconds, as recorded
    late_ms: float | None  # behind the schedule; none: there was none
    held_back: bool  # as many as may be were under way
    ending: Ending
    status: int | None
    error: str
    finish_reason: str
    ttft_ms: float | None
    total_ms: float
    prompt_tokens: int | None
    completion_tokens: int | None
    answered: Answered | None  # when it was recorded


def outcome(
    request: Recorded, done: Posted[AnyReply], late_ms: float | None, *, held_back: bool
) -> Outcome:
    """What became of a request, from what was read."""
    said = Said(streamed=False) if done.reply is None else done.reply.said()
    ending, error = _ending(done, said)
    return Outcome(
        id=request.id,
        path=request.path,
        model=str(request.body.get("model", ""))[:200],
        at=request.at,
        late_ms=late_ms,
        held_back=held_back,
        ending=ending,
        status=done.status,
        error=error,
        finish_reason=said.finish_reason,
        ttft_ms=None if said.ttft_s is None else said.ttft_s * 1000,
        total_ms=done.seconds * 1000,
        prompt_tokens=said.prompt_tokens,
        completion_tokens=said.completion_tokens,
        answered=request.answered,
    )


def _ending(done: Posted[AnyReply], said: Said) -> tuple[Ending, str]:
    if done.status is None:
        return Ending.NO_ANSWER, done.error
    if done.status != 200:
        return Ending.REFUSED, done.error or error_of(done.body.decode(errors="replace"))
    if said.error:
        return Ending.ERROR_IN_STREAM, said.error
    if done.error:
        return Ending.TRUNCATED, done.error
    if said.truncated:
        return Ending.TRUNCATED, "it ended before it was whole"
    return Ending.WHOLE, ""


@dataclass(frozen=True, slots=True)
class Spread:
    """Percentiles of so many figures."""

    count: int
    p50: float
    p99: float
    most: float


def spread(figures: Iterable[float | None]) -> Spread | None:
    """The percentiles of those that are there: nearest rank, so each was measured."""
    found = sorted(each for each in figures if each is not None)
    if not found:
        return None
    at = [found[math.ceil(share * len(found)) - 1] for share in (0.5, 0.99)]
    return Spread(len(found), at[0], at[1], found[-1])


@dataclass(frozen=True, slots=True)
class Summary:
    """A replay in sum. Times are those of whole answers."""

    requests: int
    seconds: float
    endings: Mapping[str, int]
    statuses: Mapping[str, int]
    finish_reasons: Mapping[str, int]
    errors: Mapping[str, int]  # the ten most frequent
    late_ms: Spread | None
    held_back: int
    ttft_ms: Spread | None
    total_ms: Spread | None
    prompt_tokens: int
    completion_tokens: int
    told_tokens: int  # answers that told their tokens

    @property
    def failed(self) -> int:
        """Requests without a whole answer."""
        return self.requests - self.endings.get(Ending.WHOLE, 0)


def summary(outcomes: Sequence[Outcome], seconds: float) -> Summary:
    """Counts."""
    whole = [each for each in outcomes if each.ending is Ending.WHOLE]
    told = [each for each in outcomes if each.completion_tokens is not None]
    return Summary(
        requests=len(outcomes),
        seconds=seconds,
        endings=_counted(each.ending for each in outcomes),
        statuses=_counted(str(each.status or "none") for each in outcomes),
        finish_reasons=_counted(each.finish_reason or "none" for each in whole),
        errors=_counted((each.error for each in outcomes if each.error), 10),
        late_ms=spread(each.late_ms for each in outcomes),
        held_back=sum(each.held_back for each in outcomes),
        ttft_ms=spread(each.ttft_ms for each in whole),
        total_ms=spread(each.total_ms for each in whole),
        prompt_tokens=sum(each.prompt_tokens or 0 for each in outcomes),
        completion_tokens=sum(each.completion_tokens or 0 for each in outcomes),
        told_tokens=len(told),
    )


@dataclass(frozen=True, slots=True)
class Beside:
    """What was recorded beside what was answered now: requests that both know."""

    requests: int
    other_status: int
    other_finish_reason: int
    ttft_ms: tuple[Spread, Spread] | None  # then, now
    total_ms: tuple[Spread, Spread] | None
    completion_tokens: tuple[int, int] | None


def beside(outcomes: Sequence[Outcome]) -> Beside | None:
    """The comparison; none where the recording tells no answers."""
    known = [(each.answered, each) for each in outcomes if each.answered is not None]
    if not known:
        return None
    tokens = _both(known, lambda it: it.completion_tokens)
    return Beside(
        requests=len(known),
        other_status=sum(then.status != now.status for then, now in known),
        other_finish_reason=sum(
            bool(then.finish_reason) and then.finish_reason != now.finish_reason
            for then, now in known
            if now.ending is Ending.WHOLE
        ),
        ttft_ms=_spreads(_both(known, lambda it: it.ttft_ms)),
        total_ms=_spreads(_both(known, lambda it: it.total_ms)),
        completion_tokens=(sum(each[0] for each in tokens), sum(each[1] for each in tokens))
        if tokens
        else None,
    )


def _both(known: Sequence[tuple[Answered, Outcome]], of: Callable[[Any], Any]) -> list[Any]:
    found = [(of(then), of(now)) for then, now in known if now.ending is Ending.WHOLE]
    return [each for each in found if None not in each]


def _spreads(pairs: Sequence[tuple[float, float]]) -> tuple[Spread, Spread] | None:
    then, now = spread(each[0] for each in pairs), spread(each[1] for each in pairs)
    return None if then is None or now is None else (then, now)


def _counted(told: Iterable[str], most: int | None = None) -> dict[str, int]:
    return dict(Counter(map(str, told)).most_common(most))


def as_dict(outcomes: Sequence[Outcome], total: Summary, header: Header) -> dict[str, Any]:
    """Everything, each request too."""
    found = beside(outcomes)
    return {
        "recorded": {"began": header.began.isoformat(), "redacted": list(header.redacted)},
        "sum": {**asdict(total), "failed": total.failed},
        "beside_recorded": found and asdict(found),
        "requests": [asdict(each) for each in outcomes],
    }


def as_markdown(
    outcomes: Sequence[Outcome], total: Summary, header: Header, target: str, pace: str
) -> str:
    """What a person reads."""
    lines = [
        f"## {total.requests} requests replayed at {cell(target)}, {pace}",
        "",
        f"{_plural(total.failed)} without a whole answer. {total.seconds:.1f} s in all.",
        _lateness(total),
    ]
    if header.redacted:
        taken = ", ".join(map(cell, header.redacted))
        lines.append(f"Recorded without: {taken}. Answers may differ for that.")
    lines += ["", "| what | counts |", "|---|---|"]
    for name, counts in (
        ("ending", total.endings),
        ("status", total.statuses),
        ("finish reason", total.finish_reasons),
        ("error", total.errors),
    ):
        lines += [f"| {name} | {_counts(counts)} |"] if counts else []
    tokens = f"{total.prompt_tokens:,} of prompts, {total.completion_tokens:,} of answers"
    lines.append(f"| tokens | {tokens}, told by {total.told_tokens} answers |")
    lines += ["", "| whole answers | n | p50 | p99 | longest |", "|---|---:|---:|---:|---:|"]
    lines += _row("TTFT ms", total.ttft_ms) + _row("total ms", total.total_ms)
    return "\n".join([*lines, *_beside_lines(beside(outcomes))])


def _lateness(total: Summary) -> str:
    if total.late_ms is None:
        return "No schedule was kept."
    late = total.late_ms
    said = f"Behind the schedule: p50 {late.p50:.1f} ms, p99 {late.p99:.1f}, most {late.most:.1f}."
    if total.held_back:
        said += f" {_plural(total.held_back)} had to wait, with as many under way as may be."
    return said


def _beside_lines(found: Beside | None) -> list[str]:
    if found is None:
        return []
    head = f"Of {_plural(found.requests)} the recording tells the answer:"
    lines = ["", f"{head} {found.other_status} have another status now,"]
    lines[-1] += f" {found.other_finish_reason} end for another reason."
    if found.completion_tokens is not None:
        then, now = found.completion_tokens
        lines[-1] += f" Their answers had {then:,} tokens then, {now:,} now."
    lines += ["", "| whole answers | n | p50 | p99 | longest |", "|---|---:|---:|---:|---:|"]
    for name, both in (("TTFT ms", found.ttft_ms), ("total ms", found.total_ms)):
        if both is not None:
            lines += _row(f"{name}, recorded", both[0]) + _row(f"{name}, now", both[1])
    return lines


def _row(name: str, found: Spread | None) -> list[str]:
    if found is None:
        return []
    return [f"| {name} | {found.count} | {found.p50:.1f} | {found.p99:.1f} | {found.most:.1f} |"]


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{cell(name[:160])}: {count}" for name, count in counts.items())


def _plural(count: int) -> str:
    return "1 request" if count == 1 else f"{count} requests"
