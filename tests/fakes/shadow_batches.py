"""What a gateway tells the comparer, as tests need it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from penstock.v1 import common_pb2, shadow_pb2

RULE = "uid-1"
CHAT = "/v1/chat/completions"


def answer(
    text: str = "Hello there.", *, status: int = 200, seconds: float = 1.0, **more: Any
) -> shadow_pb2.ShadowAnswer:
    """A chat's answer that was not streamed."""
    choice = {"index": 0, "message": {"content": text}, "finish_reason": "stop"}
    body = {"choices": [choice]} if status == 200 else {"error": {"message": text, "type": "t"}}
    return shadow_pb2.ShadowAnswer(
        status=status,
        content_type="application/json",
        body=json.dumps(body).encode(),
        total_us=round(seconds * 1e6),
        usage=common_pb2.Usage(prompt_tokens=5, completion_tokens=len(text.split())),
        **{"deployment": "chat", **more},
    )


def streamed(
    chunks: Iterable[Mapping[str, Any]], *, done: bool = True, **more: Any
) -> shadow_pb2.ShadowAnswer:
    """An answer that was streamed, of these chunks."""
    lines = [f"data: {json.dumps(chunk)}\n\n" for chunk in chunks]
    text = "".join(lines) + ("data: [DONE]\n\n" if done else "")
    return shadow_pb2.ShadowAnswer(
        status=200, content_type="text/event-stream; charset=utf-8", body=text.encode(), **more
    )


def pair(
    number: int = 1,
    *,
    session: int | None = None,
    primary: shadow_pb2.ShadowAnswer | None = None,
    candidate: shadow_pb2.ShadowAnswer | None = None,
    again: shadow_pb2.ShadowAnswer | None = None,
    body: Mapping[str, Any] | None = None,
    marks: Iterable[str] = (),
    rule: str = RULE,
) -> shadow_pb2.ShadowPair:
    """One request's answers; it is a session of its own where none is named."""
    return shadow_pb2.ShadowPair(
        rule=rule,
        request_id=f"req-{number}",
        session=number if session is None else session,
        path=CHAT,
        body=json.dumps(body or {"messages": []}).encode(),
        primary=primary or answer(),
        candidate=candidate or answer(deployment="small"),
        again=again,
        marks=marks,
    )


def batch(
    number: int,
    pairs: Iterable[shadow_pb2.ShadowPair] = (),
    *,
    outcomes: Mapping[str, int] | None = None,
    instance: str = "i1",
    gateway: str = "gw-1",
) -> shadow_pb2.ShadowBatch:
    """A batch of one gateway's instance."""
    counts = [
        shadow_pb2.ShadowCount(rule=RULE, outcome=outcome, count=count)
        for outcome, count in (outcomes or {}).items()
    ]
    return shadow_pb2.ShadowBatch(
        gateway_id=gateway, instance=instance, number=number, pairs=pairs, counts=counts
    )
