"""What is kept of a pair whose texts are to be shown: the request as it was sent, and what both
answered. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from penstock.evals.comparison.pair import Answer, Choice, Pair


def as_dict(body: Mapping[str, Any], pair: Pair) -> dict[str, Any]:
    """For JSON."""
    return {
        "id": pair.id,
        "request": dict(body),
        "primary": _answer(pair.primary),
        "candidate": _answer(pair.candidate),
    }


@dataclass(frozen=True, slots=True)
class Said:
    """A pair as people read it."""

    id: str
    asked: str  # the end of it: the last message, or the prompt
    primary: str
    candidate: str

    @classmethod
    def of(cls, told: Mapping[str, Any]) -> Said:
        """What `as_dict` made, whatever redaction has done to it since."""
        answers = [_read(told.get(arm)) for arm in ("primary", "candidate")]
        return cls(str(told.get("id", "")), _asked(_object(told.get("request"))), *answers)


def _answer(answer: Answer) -> dict[str, Any]:
    return {"choices": [_choice(each) for each in answer.choices], "error": answer.error}


def _choice(choice: Choice) -> dict[str, Any]:
    return {
        "text": choice.text,
        "refusal": choice.refusal,
        "calls": [{"name": each.name, "arguments": each.arguments} for each in choice.calls],
        "finish_reason": choice.finish_reason,
    }


def _read(told: object) -> str:
    answer = _object(told)
    parts = [f"error: {answer['error']}"] if answer.get("error") else []
    for choice in map(_object, _list(answer.get("choices"))):
        parts += [str(choice[name]) for name in ("text", "refusal") if choice.get(name)]
        calls = map(_object, _list(choice.get("calls")))
        parts += [f"{each.get('name')}({each.get('arguments')})" for each in calls]
        if choice.get("finish_reason") == "length":
            parts.append("[cut off by its length]")
    return "\n".join(parts)


def _asked(body: Mapping[str, Any]) -> str:
    if messages := _list(body.get("messages")):
        return _content(_object(messages[-1]).get("content"))
    return _content(body.get("prompt"))


def _content(told: object) -> str:
    """A text, or the texts of a list of parts."""
    if isinstance(told, str):
        return told
    parts = [each if isinstance(each, str) else _object(each).get("text") for each in _list(told)]
    return "\n".join(str(each) for each in parts if each)


def _object(told: object) -> Mapping[str, Any]:
    return told if isinstance(told, Mapping) else {}


def _list(told: object) -> list[Any]:
    return told if isinstance(told, list) else []
