"""What gateways tell of requests and answers, as the pairs that checks read. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from penstock.evals.comparison.pair import Answer, Asked, Mark, Pair
from penstock.evals.comparison.replies import StreamedReply, error_of
from penstock.v1 import shadow_pb2

_MARKS: Final[Mapping[str, Mark]] = {
    "client_left": Mark.CLIENT_LEFT,
    "degraded": Mark.DEGRADED,
    "trimmed": Mark.TRIMMED,
    "refused": Mark.REFUSED,
    "resumed": Mark.RESUMED,
    "canary": Mark.NOT_COMPARABLE,  # another deployment than the primary had answered
}
"""Of those that gateways tell: an answer after a failover is one like any other."""
_OK: Final = 200
_DATA: Final = b"data:"
_DONE: Final = b"data: [DONE]\n"
_MICRO: Final = 1e-6
_NANO: Final = 1e-9


def pair_of(message: shadow_pb2.ShadowPair) -> Pair:
    """One request's answers."""
    arms = [
        message.primary,
        message.candidate,
        *([message.again] if message.HasField("again") else []),
    ]
    marks = {_MARKS[each] for each in message.marks if each in _MARKS}
    if any(arm.cut for arm in arms):
        marks.add(Mark.NOT_COMPARABLE)
    return Pair(
        id=message.request_id,
        primary=answer_of(message.primary),
        candidate=answer_of(message.candidate),
        again=answer_of(message.again) if message.HasField("again") else None,
        asked=Asked.of(object_of(message.body)),
        session=session_of(message),
        marks=frozenset(marks),
    )


def session_of(message: shadow_pb2.ShadowPair) -> str:
    """What its conversation's other requests have, too."""
    return f"{message.session:016x}"


def answer_of(message: shadow_pb2.ShadowAnswer) -> Answer:
    """One answer, put together; its times and tokens are those that the gateway saw."""
    streamed = message.content_type.startswith("text/event-stream")
    return replace(
        _read(message, streamed=streamed),
        **_usage(message),
        ttft=_MICRO * message.ttft_us if streamed and message.ttft_us else None,
        tpot=_tpot(message) if streamed else None,
        total=_MICRO * message.total_us or None,
        model=" ".join(filter(None, (message.deployment, message.model_version))),
        adapter=message.adapter,
    )


def _read(message: shadow_pb2.ShadowAnswer, *, streamed: bool) -> Answer:
    if message.error_code:
        return Answer(error=message.error_code)
    if message.status != _OK:
        text = message.body.decode("utf-8", "replace")
        return Answer(error=f"{message.status} {error_of(text)}")
    reply = StreamedReply({})
    for line in _stream(message.body) if streamed else (_event(object_of(message.body)), _DONE):
        reply.feed(line, 0.0)
    return reply.answer(0.0)


def _stream(body: bytes) -> Iterator[bytes]:
    """Lines of whichever endpoint's stream as those of a chat's."""
    for line in body.split(b"\n"):
        foreign = line.startswith(_DATA) and b'"delta"' not in line
        told = object_of(line.removeprefix(_DATA)) if foreign else {}
        yield _event(told) if "choices" in told else line + b"\n"


def _event(told: Mapping[str, Any]) -> bytes:
    """An answer, or a part of one, as a line of a chat's stream."""
    if isinstance(choices := told.get("choices"), list):
        told = {**told, "choices": list(_deltas(choices))}
    return b"%s %s\n" % (_DATA, json.dumps(told).encode())


def _deltas(choices: Iterable[Any]) -> Iterator[Any]:
    for choice in choices:
        if not isinstance(choice, dict):
            yield choice
            continue
        message = choice.get("message")
        delta = dict(message) if isinstance(message, dict) else {"content": choice.get("text")}
        if isinstance(calls := delta.get("tool_calls"), list):
            told = (call for call in calls if isinstance(call, dict))
            delta["tool_calls"] = [{**call, "index": number} for number, call in enumerate(told)]
        yield {**choice, "delta": delta}


def _usage(message: shadow_pb2.ShadowAnswer) -> dict[str, Any]:
    usage = message.usage
    if not message.HasField("usage"):
        return {}
    return {
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "cost": _NANO * usage.cost_nanousd or None,
    }


def _tpot(message: shadow_pb2.ShadowAnswer) -> float | None:
    later = message.usage.completion_tokens - 1
    if later < 1 or not message.ttft_us:
        return None
    return _MICRO * (message.total_us - message.ttft_us) / later


def object_of(body: bytes) -> Mapping[str, Any]:
    """The JSON object that it is, or an empty one."""
    try:
        told = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return told if isinstance(told, dict) else {}
