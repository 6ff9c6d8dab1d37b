"""How answers look at the endpoints that stream: what a fake replica says, and what a client reads.

One row for each, by the endpoint's first name.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.fakes.fake_replica import DONE, delta, last_delta, unary_chat


def named(body: dict[str, Any]) -> bytes:
    """One server-sent event that is named as its type."""
    return f"event: {body['type']}\ndata: {json.dumps(body, separators=(',', ':'))}\n\n".encode()


@dataclass(frozen=True, slots=True)
class Spoken:
    """One endpoint's words."""

    path: str
    body: dict[str, Any]  # of a request, without `stream`
    begin: bytes  # of a stream, up to the text
    text: Callable[[str], bytes]  # an event with this text
    end: bytes  # what makes the stream whole
    last: bytes  # the part of that without which it is not
    unary: bytes
    broken: bytes  # how its in-stream errors begin


RESPONSE: dict[str, Any] = {
    "id": "resp_1",
    "object": "response",
    "created_at": 1,
    "model": "mini",
    "status": "in_progress",
    "output": [],
    "parallel_tool_calls": True,
    "tool_choice": "auto",
    "tools": [],
}
MESSAGE: dict[str, Any] = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "mini",
    "content": [],
    "usage": {"input_tokens": 3, "output_tokens": 0},
}
ITEM: dict[str, Any] = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "status": "in_progress",
    "content": [],
}


def response_event(kind: str, number: int, **fields: Any) -> bytes:
    """One event of a response."""
    return named({"type": f"response.{kind}", "sequence_number": number, **fields})


def output_text(text: str) -> bytes:
    """The third event of a response."""
    where = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
    return response_event("output_text.delta", 3, delta=text, logprobs=[], **where)


def block_text(text: str) -> bytes:
    """A part of a message's only block."""
    text_delta = {"type": "text_delta", "text": text}
    return named({"type": "content_block_delta", "index": 0, "delta": text_delta})


MESSAGES_ASKED = [{"role": "user", "content": "hi"}]
COMPLETED = RESPONSE | {"status": "completed"}

CHAT = Spoken(
    path="/v1/chat/completions",
    body={"model": "mini", "messages": MESSAGES_ASKED},
    begin=b"",
    text=delta,
    end=last_delta() + DONE,
    last=DONE,
    unary=unary_chat("first"),
    broken=b'data: {"error":{',
)
RESPONSES = Spoken(
    path="/v1/responses",
    body={"model": "mini", "input": "hi"},
    begin=response_event("created", 0, response=RESPONSE)
    + response_event("in_progress", 1, response=RESPONSE)
    + response_event("output_item.added", 2, output_index=0, item=ITEM),
    text=output_text,
    end=response_event("completed", 4, response=COMPLETED),
    last=b"event: response.completed\n",
    unary=json.dumps(COMPLETED).encode(),
    broken=b"event: response.failed\ndata: {",
)
MESSAGES = Spoken(
    path="/v1/messages",
    body={"model": "mini", "max_tokens": 5, "messages": MESSAGES_ASKED},
    begin=named({"type": "message_start", "message": MESSAGE})
    + named({"type": "content_block_start", "index": 0, "content_block": {"type": "text"}}),
    text=block_text,
    end=named({"type": "content_block_stop", "index": 0}) + named({"type": "message_stop"}),
    last=b"event: message_stop\n",
    unary=json.dumps(MESSAGE | {"stop_reason": "end_turn"}).encode(),
    broken=b'event: error\ndata: {"type":"error",',
)

SPOKEN = {row.path: row for row in (CHAT, RESPONSES, MESSAGES)}
