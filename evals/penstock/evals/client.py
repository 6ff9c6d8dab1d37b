"""A small OpenAI-compatible client for single requests, where timing does not matter."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import httpx

from penstock.evals.endpoint import request
from penstock.evals.errors import EvalError

CHAT_PATH = "/v1/chat/completions"
DONE = b"data: [DONE]\n\n"


@dataclass(frozen=True, slots=True)
class Answer:
    """One whole answer, byte for byte, without HTTP's framing."""

    body: bytes
    stream: bool

    @property
    def events(self) -> int:
        """Data events without [DONE]; 0 for a unary answer."""
        return self.body.count(b"\n\n") - 1 if self.stream else 0


def ask(base_url: str, body: Mapping[str, object], key: str = "") -> Answer:
    """One chat request, with a key if there is one. Raises `EvalError` but for a whole answer."""
    url = base_url + CHAT_PATH
    try:
        reply = request("POST", url, key, timeout=60, body=body)
    except httpx.HTTPError as error:
        raise EvalError(f"{url} does not answer: {error!r}") from error
    stream = reply.headers.get("content-type", "").startswith("text/event-stream")
    if reply.status_code != 200:
        raise EvalError(f"{url} answered {reply.status_code}: {reply.text[:300]}")
    if stream != bool(body.get("stream")):
        raise EvalError(f"{url} answered with {reply.headers.get('content-type')!r}")
    if stream and not reply.content.endswith(DONE):
        raise EvalError(f"{url} ended a stream without [DONE]: ...{reply.text[-300:]!r}")
    return Answer(reply.content, stream)
