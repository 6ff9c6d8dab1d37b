"""One small real request that a deployment is tried with, and what its answer says. Pure."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

from penstock.control.errors import Code, PenstockError

CHAT = "/v1/chat/completions"
COMPLETIONS = "/v1/completions"
EMBEDDINGS = "/v1/embeddings"
GENERATING = (CHAT, COMPLETIONS)
MOST_TOKENS = 16
_SAID = "Say hello in one short sentence."
_BEGUN = "Once upon a time"
_ASKED: dict[str, dict[str, Any]] = {
    CHAT: {"messages": [{"role": "user", "content": _SAID}]},
    COMPLETIONS: {"prompt": _BEGUN},
    EMBEDDINGS: {"input": _SAID},
    "/classify": {"input": _SAID},
    "/v1/score": {"text_1": _SAID, "text_2": _BEGUN},
    "/v1/rerank": {"query": _SAID, "documents": [_BEGUN]},
    "/pooling": {"input": _SAID},
}


@dataclass(frozen=True, slots=True)
class Question:
    """What a replica is asked."""

    path: str
    body: bytes


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of it, as in inference.proto, `Finished`; the body is the whole answer."""

    body: bytes
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    cost_nanousd: int = 0  # billionths of a US dollar
    finish_reason: str = ""  # of the first choice
    ttft_us: int = 0  # microseconds to the first bytes of the answer
    total_us: int = 0
    model: str = ""  # path, hub id or the provider's id
    model_version: str = ""
    backend: str = ""
    backend_version: str = ""
    provider_request_id: str = ""


@dataclass(frozen=True, slots=True)
class Said:
    """What an answer says."""

    text: str = ""
    finish_reason: str = ""
    dimensions: int = 0  # of an embedding


def question_for(deployment: str, endpoints: Collection[str]) -> Question:
    """What a replica that serves these paths can be asked; one that names none is taken to chat.
    Raises `not-testable`."""
    paths = endpoints or (CHAT,)
    path = next((path for path in _ASKED if path in paths), None)
    if path is None:
        raise PenstockError(
            f"{deployment!r} serves {', '.join(sorted(endpoints))}: a test asks one of"
            f" {', '.join(_ASKED)}; send it a request of its own kind",
            Code.NOT_TESTABLE,
        )
    extra = {"max_tokens": MOST_TOKENS, "stream": True} if path in GENERATING else {}
    return Question(path, _body(deployment, path, extra))


def proof_for(deployment: str, endpoints: Collection[str]) -> Question | None:
    """The smallest request that shows that the model computes; None: it serves none that is known.

    Text is completed rather than chatted about: a model without a chat template can only do that.
    """
    paths = sorted((path for path in _ASKED if path in endpoints), key=lambda it: it == CHAT)
    if not paths:
        return None
    extra = {"max_tokens": 1} if paths[0] in GENERATING else {}
    return Question(paths[0], _body(deployment, paths[0], extra))


def _body(deployment: str, path: str, extra: dict[str, Any]) -> bytes:
    return json.dumps({"model": deployment, **_ASKED[path], **extra}).encode()


def said_in(path: str, body: bytes) -> Said:
    """What an answer of this path says; nothing where it is not as OpenAI's are."""
    if path == EMBEDDINGS:
        return Said(dimensions=_dimensions(body))
    text, reason = "", ""
    for event in _events(body):
        for choice in _list_of(event, "choices")[:1]:
            delta = choice.get("delta")
            part = delta.get("content") if isinstance(delta, dict) else choice.get("text")
            text += part if isinstance(part, str) else ""
            reason = str(choice.get("finish_reason") or reason)
    return Said(text, reason)


def _events(body: bytes) -> Iterator[dict[str, Any]]:
    for line in body.splitlines():
        if line.startswith(b"data:"):
            yield _object(line.removeprefix(b"data:"))


def _dimensions(body: bytes) -> int:
    vectors = [each.get("embedding") for each in _list_of(_object(body), "data")]
    return len(vectors[0]) if vectors and isinstance(vectors[0], list) else 0


def _object(text: bytes) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _list_of(found: dict[str, Any], name: str) -> list[dict[str, Any]]:
    listed = found.get(name)
    return [each for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []
