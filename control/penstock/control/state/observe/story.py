"""A record as a story: what became of a request and why, in the words that its client and the log
were told, and when what happened. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from penstock.control.state.observe.record import Leg, RequestRecord, Stay
from penstock.control.state.observe.time_line import Moment, time_line
from penstock.control.state.observe.words import OUTCOMES, PHASES, PROGRAMS, counted, span

LEFT: Final = "cancelled"
OK: Final = 200
PARAM: Final = "param: "  # instead of a message that may quote what the client sent
CUT: Final = 296  # bytes: a message that is longer was cut by its gateway
NANO: Final = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Fact:
    """One thing that is known of it."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class Story:
    """All of it, for people."""

    title: str
    facts: tuple[Fact, ...]
    line: tuple[Moment, ...]


def story_of(it: RequestRecord) -> Story:
    """Of one request."""
    told = (Fact(name, text) for name, text in _facts(it) if text)
    return Story(_title(it), tuple(told), time_line(it))


def _title(it: RequestRecord) -> str:
    after = f"after {span(it.duration_us)}"
    if it.outcome == LEFT:
        where = "in the middle of its answer" if it.first_byte_us else "before it was answered"
        return f"{it.request_id}: its client left {after}, {where}"
    if it.outcome == "failed" and it.status == OK:
        began = f"in the middle of an answer that began with {it.status}"
        return f"{it.request_id} failed {began} ({it.error_code}), {after}"
    words = OUTCOMES.get(it.outcome, it.outcome)
    why = f" ({it.drop_reason or it.error_code})" if it.drop_reason or it.error_code else ""
    degraded = f", degraded ({it.degraded})" if it.degraded else ""
    return f"{it.request_id} {words} with {it.status}{why}{degraded}, {after}"


def _facts(it: RequestRecord) -> Iterator[tuple[str, str]]:
    wrong = it.message.removeprefix(PARAM)
    if wrong == it.message:
        yield "its client was told", _message(it.message)
    else:
        yield (
            "what was wrong",
            f"its {wrong}; the words may quote it, and its client alone has them",
        )
    yield "received", f"{it.received_at:%Y-%m-%d %H:%M:%S.%f} UTC, at {it.path}"
    yield "from", _whose(it)
    yield "model", _model(it)
    yield "prompt version", it.prompt_version
    yield "tokens", _tokens(it)
    yield "degraded", _degraded(it)
    yield "trimmed", _trimmed(it)
    yield "canary", _canary(it)
    yield "router program", PROGRAMS.get(it.program, it.program)
    for leg in it.legs:
        yield "leg", _leg(leg)
    yield "shadowed by", ", ".join(it.shadows)
    yield "quarantine", _danger(it)
    yield "answer", _answer(it)
    yield "cost", f"{it.cost_nanousd / NANO:.9f} USD" if it.cost_nanousd else ""
    yield "time went to", _phases(it)
    yield "trace", it.trace_id


def _message(message: str) -> str:
    return f"{message} ..." if len(message.encode()) > CUT else message


def _whose(it: RequestRecord) -> str:
    whose = f"tenant {it.tenant}, key {it.key_id}" if it.tenant else "a client without a key"
    whose += f", at {it.client}" if it.client else ""
    return f"{whose}; its own id: {it.client_request_id}" if it.client_request_id else whose


def _model(it: RequestRecord) -> str:
    """As it was named, and what that was."""
    if not it.stays:
        return f"{it.model}, which was not resolved" if it.model else ""
    said = _resolved(it.stays[0])
    if len(it.stays) > 1:
        said += f"; it ended at {_resolved(it.stays[-1])}"
    version = f"; answered by weights {it.model_version}" if it.model_version else ""
    return f"{it.model} is {said}{version}"


def _resolved(stay: Stay) -> str:
    adapter = f" with adapter {stay.adapter}" if stay.adapter else ""
    by = f" by {stay.by}" if stay.by else ""
    return f"deployment {stay.deployment}{adapter}{by}"


def _tokens(it: RequestRecord) -> str:
    last = it.stays[-1] if it.stays else Stay()
    parts = []
    if last.prompt_estimate or last.completion_estimate:
        parts.append(
            f"estimated {last.prompt_estimate:,} of the prompt,"
            f" {last.completion_estimate:,} reserved for the answer"
        )
    if it.prompt_tokens or it.completion_tokens:
        parts.append(
            f"counted {it.prompt_tokens:,} of the prompt ({it.cached_tokens:,} from the cache),"
            f" {it.completion_tokens:,} of the answer"
        )
    return "; ".join(parts)


def _degraded(it: RequestRecord) -> str:
    if not it.degraded:
        return ""
    asked = f", instead of {it.asked}" if it.asked else ""
    return f"{it.degraded}: answered by rung {it.rung}{asked}"


def _trimmed(it: RequestRecord) -> str:
    if not (it.trimmed_messages or it.trimmed_tokens):
        return ""
    messages = counted(it.trimmed_messages, "message")
    return f"messages={it.trimmed_messages}, tokens={it.trimmed_tokens}: the oldest {messages} left"


def _canary(it: RequestRecord) -> str:
    return f"{it.canary}, {'candidate' if it.of_candidate else 'stable'} arm" if it.canary else ""


def _leg(leg: Leg) -> str:
    done = f"failed: {leg.failure}" if leg.failure else "done"
    moved = f", KV of {counted(leg.tokens, 'token')}" if leg.tokens else ""
    return f"{leg.call} at {leg.replica}{moved}, {span(leg.took_us)}, {done}"


def _danger(it: RequestRecord) -> str:
    if it.quarantined:
        return "engines had died with this request aboard: it is refused"
    return "engines had died with this request aboard: it ran apart from others" * it.suspect


def _answer(it: RequestRecord) -> str:
    if not (it.bytes or it.events):
        return ""
    events = f" in {counted(it.events, 'event')}" if it.events else ""
    first = f", the first after {span(it.first_byte_us)}" if it.first_byte_us else ""
    return f"{counted(it.bytes, 'byte')}{events}{first}"


def _phases(it: RequestRecord) -> str:
    told = zip(PHASES, it.phase_us, strict=False)
    return ", ".join(f"{name} {span(us)}" for name, us in told if us)
