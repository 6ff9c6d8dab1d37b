"""A dataset: JSON Lines, a prompt each, with what its answers are held to. Pure."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from penstock.evals.adapter_regression.checks import BadCheck, Check, Known, check
from penstock.evals.errors import EvalError

_FIELDS: Final = ("id", "prompt", "system", "messages", "reference", "checks", "request")
_OWN: Final = ("model", "messages", "stream", "stream_options", "n")
_ROLES: Final = ("system", "user", "assistant")
_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]{0,79}")


class BadDataset(EvalError):
    """A dataset that cannot be used: the line, the field, and what it must be."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """One line: what is asked, and what is made of the answers."""

    id: str
    messages: tuple[Mapping[str, str], ...]
    references: tuple[str, ...]
    checks: tuple[Check, ...]
    request: Mapping[str, Any] = field(default_factory=dict)  # more fields of the chat request


@dataclass(frozen=True, slots=True)
class Dataset:
    """All prompts of a file, and the file's SHA-256."""

    sha256: str
    prompts: tuple[Prompt, ...]

    @property
    def kinds(self) -> frozenset[str]:
        """The kinds of checks that any prompt has."""
        return frozenset(each.kind for prompt in self.prompts for each in prompt.checks)


class _Wrong(Exception):
    """What is wrong with a line; whoever reads it knows its number."""


def parse(data: bytes, refusals: tuple[re.Pattern[str], ...]) -> Dataset:
    """Reads the bytes of a file. Raises `BadDataset`, for the first line that is wrong."""
    prompts: list[Prompt] = []
    seen: dict[str, int] = {}
    for number, line in enumerate(data.split(b"\n"), start=1):
        if not line.strip():
            continue
        try:
            prompt = _prompt(line, number, refusals)
            _count_once(prompt, number, seen)
        except _Wrong as wrong:
            raise BadDataset(f"line {number} of the dataset: {wrong}") from wrong
        prompts.append(prompt)
    if not prompts:
        raise BadDataset("the dataset holds no prompt: it needs one JSON object a line")
    return Dataset(hashlib.sha256(data).hexdigest(), tuple(prompts))


def _count_once(prompt: Prompt, number: int, seen: dict[str, int]) -> None:
    # The same question twice is no more evidence than once, and would count as more.
    asked = json.dumps([prompt.messages, prompt.request], sort_keys=True)
    for key, what in ((f"id {prompt.id}", "id"), (asked, "question")):
        if key in seen:
            raise _Wrong(f"it has the {what} of line {seen[key]}: each has to be its own")
        seen[key] = number


def _prompt(line: bytes, number: int, refusals: tuple[re.Pattern[str], ...]) -> Prompt:
    told = _object(line)
    if unknown := sorted(set(told) - set(_FIELDS)):
        raise _Wrong(f"there is no field {unknown[0]!r}: there are {', '.join(_FIELDS)}")
    name = told.get("id", f"line-{number}")
    if not isinstance(name, str) or not _ID.fullmatch(name):
        raise _Wrong("id: must be a text of letters, digits, . _ / -, at most 80")
    references = _references(told.get("reference"))
    return Prompt(
        id=name,
        messages=_messages(told),
        references=references,
        checks=_checks(told.get("checks"), Known(references, refusals)),
        request=_request(told.get("request", {})),
    )


def _object(line: bytes) -> dict[str, Any]:
    try:
        told = json.loads(line)
        json.dumps(told, ensure_ascii=False).encode()
    except UnicodeError as error:
        raise _Wrong("is no UTF-8, or holds half a surrogate pair") from error
    except (ValueError, RecursionError) as error:
        raise _Wrong(f"is no JSON: {error}") from error
    if not isinstance(told, dict):
        raise _Wrong("must be a JSON object")
    return told


def _messages(told: Mapping[str, Any]) -> tuple[Mapping[str, str], ...]:
    if ("prompt" in told) == ("messages" in told):
        raise _Wrong("needs either prompt (a text) or messages (a list)")
    if "prompt" in told:
        system = [_message("system", "system", told["system"])] if "system" in told else []
        return (*system, _message("prompt", "user", told["prompt"]))
    if "system" in told:
        raise _Wrong("system: belongs to prompt; with messages, make it the first of them")
    if not isinstance(told["messages"], list) or not told["messages"]:
        raise _Wrong("messages: must be a list of at least one")
    return tuple(_given(number, each) for number, each in enumerate(told["messages"]))


def _given(number: int, told: object) -> Mapping[str, str]:
    name = f"messages[{number}]"
    if not isinstance(told, dict) or set(told) != {"role", "content"}:
        raise _Wrong(f"{name}: must be an object of role and content")
    if told["role"] not in _ROLES:
        raise _Wrong(f"{name}: role is {told['role']!r}, must be one of {', '.join(_ROLES)}")
    return _message(f"{name}.content", told["role"], told["content"])


def _message(name: str, role: str, content: object) -> Mapping[str, str]:
    if not isinstance(content, str) or not content.strip():
        raise _Wrong(f"{name}: must be a text that is not empty")
    return {"role": role, "content": content}


def _references(told: object) -> tuple[str, ...]:
    if told is None:
        return ()
    texts = [told] if isinstance(told, str) else told
    if not isinstance(texts, list) or not texts or not all(isinstance(t, str) and t for t in texts):
        raise _Wrong("reference: must be a text or a list of texts, none of them empty")
    return tuple(texts)


def _checks(told: object, known: Known) -> tuple[Check, ...]:
    if told is None and known.references:
        told = {"similarity": True}
    if not isinstance(told, dict) or not told:
        raise _Wrong("checks: must be an object of at least one check, or give a reference")
    return tuple(_checked(told, known))


def _checked(told: Mapping[str, object], known: Known) -> Iterable[Check]:
    for kind, wish in told.items():
        try:
            yield check(kind, wish, known)
        except BadCheck as bad:
            raise _Wrong(f"checks.{kind}: {bad}") from bad


def _request(told: object) -> Mapping[str, Any]:
    if not isinstance(told, dict):
        raise _Wrong("request: must be an object of fields for the chat request")
    if own := sorted(set(told) & set(_OWN)):
        raise _Wrong(f"request.{own[0]}: the run itself says that")
    return told


__all__ = ["BadDataset", "Dataset", "Prompt", "parse"]
