"""A dataset's questions: JSON Lines, a question each, with whatever else a kind of run asks of a
line. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from penstock.evals.errors import EvalError

FIELDS: Final = ("id", "prompt", "system", "messages", "request")
_OWN: Final = ("model", "messages", "stream", "stream_options", "n")
_ROLES: Final = ("system", "user", "assistant")
_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]{0,79}")


class BadDataset(EvalError):
    """A dataset that cannot be used: the line, the field, and what it must be."""


class WrongLine(Exception):
    """What is wrong with a line; whoever reads it knows its number."""


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked."""

    id: str
    messages: tuple[Mapping[str, str], ...]
    request: Mapping[str, Any] = field(default_factory=dict)  # more fields of the chat request

    def body(self, model: str, **own: Any) -> dict[str, Any]:
        """The chat request. What the question says itself goes before the run's settings."""
        messages = [dict(each) for each in self.messages]
        return {**own, **self.request, "model": model, "messages": messages}


Line = TypeVar("Line")


def read(
    data: bytes, fields: Collection[str], line_of: Callable[[Question, Mapping[str, Any]], Line]
) -> list[Line]:
    """Reads the bytes of a file, whose lines may have `fields` besides `FIELDS`. Raises
    `BadDataset`, for the first line that is wrong; `line_of` says so by `WrongLine`."""
    found: list[Line] = []
    seen: dict[str, int] = {}
    for number, line in enumerate(data.split(b"\n"), start=1):
        if not line.strip():
            continue
        try:
            told = object_of(line, (*FIELDS, *fields))
            question = _question(told, number)
            found.append(line_of(question, told))
            _count_once(question, number, seen)
        except WrongLine as wrong:
            raise BadDataset(f"line {number} of the dataset: {wrong}") from wrong
    if not found:
        raise BadDataset("the dataset holds no prompt: it needs one JSON object a line")
    return found


def _count_once(question: Question, number: int, seen: dict[str, int]) -> None:
    # The same question twice is no more evidence than once, and would count as more.
    asked = json.dumps([question.messages, question.request], sort_keys=True)
    for key, what in ((f"id {question.id}", "id"), (asked, "question")):
        if key in seen:
            raise WrongLine(f"it has the {what} of line {seen[key]}: each has to be its own")
        seen[key] = number


def object_of(line: bytes, fields: Collection[str]) -> dict[str, Any]:
    """A line's object, of these fields, which can be written again. Raises `WrongLine`."""
    try:
        told = json.loads(line)
        json.dumps(told, ensure_ascii=False, allow_nan=False).encode()
    except UnicodeError as error:
        raise WrongLine("is no UTF-8, or holds half a surrogate pair") from error
    except (ValueError, RecursionError) as error:
        raise WrongLine(f"is no JSON: {error}") from error
    if not isinstance(told, dict):
        raise WrongLine("must be a JSON object")
    if unknown := sorted(set(told) - set(fields)):
        raise WrongLine(f"there is no field {unknown[0]!r}: there are {', '.join(fields)}")
    return told


def _question(told: Mapping[str, Any], number: int) -> Question:
    name = told.get("id", f"line-{number}")
    if not isinstance(name, str) or not _ID.fullmatch(name):
        raise WrongLine("id: must be a text of letters, digits, . _ / -, at most 80")
    return Question(name, _messages(told), _request(told.get("request", {})))


def _messages(told: Mapping[str, Any]) -> tuple[Mapping[str, str], ...]:
    if ("prompt" in told) == ("messages" in told):
        raise WrongLine("needs either prompt (a text) or messages (a list)")
    if "prompt" in told:
        system = [_message("system", "system", told["system"])] if "system" in told else []
        return (*system, _message("prompt", "user", told["prompt"]))
    if "system" in told:
        raise WrongLine("system: belongs to prompt; with messages, make it the first of them")
    if not isinstance(told["messages"], list) or not told["messages"]:
        raise WrongLine("messages: must be a list of at least one")
    return tuple(_given(number, each) for number, each in enumerate(told["messages"]))


def _given(number: int, told: object) -> Mapping[str, str]:
    name = f"messages[{number}]"
    if not isinstance(told, dict) or set(told) != {"role", "content"}:
        raise WrongLine(f"{name}: must be an object of role and content")
    if told["role"] not in _ROLES:
        raise WrongLine(f"{name}: role is {told['role']!r}, must be one of {', '.join(_ROLES)}")
    return _message(f"{name}.content", told["role"], told["content"])


def _message(name: str, role: str, content: object) -> Mapping[str, str]:
    if not isinstance(content, str) or not content.strip():
        raise WrongLine(f"{name}: must be a text that is not empty")
    return {"role": role, "content": content}


def _request(told: object) -> Mapping[str, Any]:
    if not isinstance(told, dict):
        raise WrongLine("request: must be an object of fields for the chat request")
    if own := sorted(set(told) & set(_OWN)):
        raise WrongLine(f"request.{own[0]}: the run itself says that")
    return told
