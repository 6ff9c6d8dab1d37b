"""A small OpenAI-compatible provider, and the ways in which such ones misbehave."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any, Final

from tests.fakes.provider_server import Asked, Scenario, Wire

MODEL: Final = "gpt-fake"
KEY: Final = "sk-test-4f9a1c77e0d2b6"
REQUEST_ID: Final = "req_of_provider_1"
_CONTEXT: Final = 4096
_EXTRA: Final = {"system_fingerprint": "fp_7", "service_tier": "default"}
_HEADERS: Final = {"x-request-id": REQUEST_ID}


def usual(pace: float = 0.0, key: str = "") -> Scenario:
    """Answers with words that follow from the prompt, one each `pace` seconds. Requests have to
    bring the key, where there is one."""

    async def answer(asked: Asked, wire: Wire) -> None:
        body = json.loads(asked.body)
        if key and asked.headers.get("authorization") != f"Bearer {key}":
            return await refuse(401, f"Incorrect API key {asked.headers.get('authorization')}")(
                asked, wire
            )
        if wrong := _wrong(body):
            return await refuse(400, wrong, param="messages")(asked, wire)
        if asked.path.endswith("/embeddings"):
            return await wire.whole(200, _vectors(body), _HEADERS)
        if asked.path.endswith("/responses"):
            return await _respond(body, wire)
        chat = asked.path.endswith("/chat/completions")
        if body.get("stream"):
            await wire.begin("text/event-stream; charset=utf-8", _HEADERS)
            for event in stream_events(body, chat=chat):
                await wire.portion(event)
                if pace:
                    await asyncio.sleep(pace)
            await wire.end()
        else:
            await wire.whole(200, json.dumps(_unary(body, chat)).encode(), _HEADERS)

    return answer


def refuse(
    status: int,
    message: str,
    *,
    code: str | None = None,
    kind: str = "invalid_request_error",
    param: str | None = None,
    headers: dict[str, str] | None = None,
) -> Scenario:
    """Answers with an error."""
    error = {"error": {"message": message, "type": kind, "param": param, "code": code}}

    async def answer(asked: Asked, wire: Wire) -> None:
        await wire.whole(status, json.dumps(error).encode(), {**_HEADERS, **(headers or {})})

    return answer


def redirect(location: str) -> Scenario:
    """Sends the client elsewhere."""
    return refuse(307, "go there", headers={"location": location})


def raw_stream(
    *portions: bytes, cut: bool = False, silent: bool = False, pause: float = 0.001
) -> Scenario:
    """Sends these portions of a stream as they are; then ends, breaks, or says nothing more."""

    async def answer(asked: Asked, wire: Wire) -> None:
        await wire.begin("text/event-stream", _HEADERS)
        for portion in portions:
            await wire.portion(portion)
            await asyncio.sleep(pause)  # so that they come apart
        if silent:
            await asyncio.sleep(60)
        if cut:
            wire.cut()
        else:
            await wire.end()

    return answer


async def nothing(asked: Asked, wire: Wire) -> None:
    """Never answers."""
    await asyncio.sleep(60)


async def broken(asked: Asked, wire: Wire) -> None:
    """Breaks the connection before a word."""
    wire.cut()


def stream_events(body: dict[str, Any], *, chat: bool = True) -> Iterator[bytes]:
    """The events of a whole answer."""
    words, reason = _words(body)
    base = _base(body, chat, "chat.completion.chunk")
    if chat:
        yield _event(base, _choice(chat, {"role": "assistant", "content": ""}))
    for word in words:
        yield _event(base, _choice(chat, {"content": word} if chat else word))
    yield _event(base, _choice(chat, {} if chat else "", reason))
    if (body.get("stream_options") or {}).get("include_usage"):
        yield _event({**base, "choices": [], "usage": _usage(body, len(words))})
    yield b"data: [DONE]\n\n"


def _wrong(body: dict[str, Any]) -> str:
    messages = body.get("messages")
    if "prompt" in body or "input" in body:
        return ""
    if not isinstance(messages, list):
        return f"'messages' must be an array, not {messages!r}."
    for message in messages:
        if not isinstance(message.get("content"), str | list):
            return f"Invalid content {message.get('content')!r}."
    if (body.get("max_tokens") or 0) > _CONTEXT:
        return f"max_tokens is too large: {body['max_tokens']}; this model has {_CONTEXT} tokens."
    return ""


def _prompt(body: dict[str, Any]) -> str:
    return json.dumps(body.get("messages") or body.get("prompt") or body.get("input"))


def _words(body: dict[str, Any]) -> tuple[list[str], str]:
    most = body.get("max_tokens") or body.get("max_completion_tokens") or 64
    seed = sum(_prompt(body).encode())
    return [f"w{(seed + index) % 997} " for index in range(most)], "length"


def _usage(body: dict[str, Any], completion: int) -> dict[str, Any]:
    prompt = len(_prompt(body).split())
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        "prompt_tokens_details": {"cached_tokens": prompt // 2},
    }


def _base(body: dict[str, Any], chat: bool, kind: str) -> dict[str, Any]:
    return {
        "id": "chatcmpl-of-provider" if chat else "cmpl-of-provider",
        "object": kind if chat else "text_completion",
        "created": 1,
        "model": body["model"],
        **_EXTRA,
    }


def _choice(chat: bool, said: Any, reason: str | None = None) -> dict[str, Any]:
    what = {"delta": said} if chat else {"text": said}
    return {"choices": [{"index": 0, **what, "finish_reason": reason}]}


def _event(*parts: dict[str, Any]) -> bytes:
    merged = {key: value for part in parts for key, value in part.items()}
    return b"data: " + json.dumps(merged).encode() + b"\n\n"


def _unary(body: dict[str, Any], chat: bool) -> dict[str, Any]:
    words, reason = _words(body)
    text = "".join(words)
    said = {"message": {"role": "assistant", "content": text}} if chat else {"text": text}
    choice = {"index": 0, **said, "finish_reason": reason}
    base = _base(body, chat, "chat.completion")
    return {**base, "choices": [choice], "usage": _usage(body, len(words))}


def _vectors(body: dict[str, Any]) -> bytes:
    vector = {"object": "embedding", "index": 0, "embedding": [0.25, -1.5]}
    usage = {"prompt_tokens": 3, "total_tokens": 3}
    answer = {"object": "list", "data": [vector], "model": body["model"], "usage": usage}
    return json.dumps(answer).encode()


async def _respond(body: dict[str, Any], wire: Wire) -> None:
    usage = {"input_tokens": 5, "output_tokens": 2, "input_tokens_details": {"cached_tokens": 4}}
    response = {"id": "resp_1", "object": "response", "model": body["model"], "status": "completed"}
    if not body.get("stream"):
        return await wire.whole(200, json.dumps({**response, "usage": usage}).encode(), _HEADERS)
    events: list[dict[str, Any]] = [
        {"type": "response.created", "response": {**response, "status": "in_progress"}},
        {"type": "response.output_text.delta", "delta": "Hello there"},
        {"type": "response.completed", "response": {**response, "usage": usage}},
    ]
    await wire.begin("text/event-stream", _HEADERS)
    for event in events:
        name = f"event: {event['type']}\n".encode()
        await wire.portion(name + b"data: " + json.dumps(event).encode() + b"\n\n")
    await wire.end()


__all__ = [
    "KEY",
    "MODEL",
    "REQUEST_ID",
    "broken",
    "nothing",
    "raw_stream",
    "redirect",
    "refuse",
    "stream_events",
    "usual",
]
