"""Requests whose cost others would pay: what they ask for is measured before vLLM works on it.

An engine compiles a request's grammar and walks it for each token on threads that all requests
share, and nothing stops it once it has begun. So patterns, schemas and lists that would hold it for
more than about a second are refused, with the limit's name; the figures were measured with xgrammar
on one core. All of a request counts together. Pure.

Measuring takes the replica's loop, so lengths come first: what is too long is not read.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from penstock.replica.vllm.guards import finite, grammars, patterns

MOST_OPTIONAL: Final = 128
"""Properties of one object in a schema that may be left out; 200 take a second to compile."""

MOST_OPTIONAL_PAIRS: Final = 40_000
"""The squares of those counts of all objects together."""

MOST_TEXT: Final = 200_000
"""Characters of all schemas, grammars and choices together; a value of any kind is at least one."""

MOST_PATTERN_TEXT: Final = 50_000
"""Characters of all patterns together."""

MOST_DEPTH: Final = 100
"""Levels of lists and objects within each other."""

MOST_COUNTED: Final = 10**10
"""The bounds of lengths in a schema, multiplied where one is inside the other. They are counters in
xgrammar, not written out: lengths of 100,000, three in each other, compile in a tenth of a
second."""

_HUGE: Final = 1 << 40

MOST_ITEMS: Final[Mapping[str, int]] = {
    "stop": 64,
    "stop_sequences": 64,
    "stop_token_ids": 64,
    "bad_words": 256,
}
"""Entries of lists that are looked through for each token. Where every token of a vocabulary is one
that stops, xgrammar writes beyond its memory, and the engine dies."""

MOST_REPEATED: Final = 64
"""Tokens of a pattern that the engine looks for after each token, and how often it is repeated:
both loops run in Python between two steps of all requests."""

_SAID_IN: Final = ("structured_outputs", "response_format", "text", "output_config")
"""Fields by which requests of one endpoint or another say what an answer must look like."""

_COUNTS: Final = ("minItems", "maxItems", "minLength", "maxLength", "minProperties")


class NotOffered(ValueError):
    """The request would hold the engine, or wants what this replica does not do; `parameter` is the
    field."""

    def __init__(self, message: str, parameter: str) -> None:
        super().__init__(message)
        self.parameter = parameter


def check(request: Any) -> None:
    """Looks at vLLM's parsed request. Raises `NotOffered`."""
    for name, most in MOST_ITEMS.items():
        listed = getattr(request, name, None)
        if isinstance(listed, list) and len(listed) > most:
            raise NotOffered(
                f"{name} has {len(listed)} entries, at most {most} are possible.", name
            )
    _check_repetition(getattr(request, "repetition_detection", None))
    names = (*_SAID_IN, *_binding_tools(request))
    wanted = {name: _plain(one) for name in names if (one := getattr(request, name, None))}
    text = 0
    for name, one in wanted.items():
        text = _check_length(one, name, text)
    bill = _Bill()
    for name, one in wanted.items():
        bill.field = name
        for level in _walk(one):
            bill.add(level)
    if field := finite.endless(wanted):
        raise NotOffered(
            f"{field} has a schema whose every answer goes on for ever: something in it requires "
            "another of its own kind. Let the recursion end, say by leaving the property out of "
            "`required` or by allowing null.",
            field,
        )


def grammar_field(request: Any) -> str:
    """The field that binds the answer; empty where it may be any of several."""
    names = [name for name in (*_SAID_IN, *_binding_tools(request)) if getattr(request, name, None)]
    return names[0] if len(names) == 1 else ""


def _check_repetition(wanted: Any) -> None:
    for name in ("max_pattern_size", "min_count"):
        if (number := getattr(wanted, name, 0)) > MOST_REPEATED:
            raise NotOffered(
                f"repetition_detection has {name} {number}, at most {MOST_REPEATED} is possible.",
                "repetition_detection",
            )


def _binding_tools(request: Any) -> tuple[str, ...]:
    """Schemas of tools may bind any answer that may call one: with "auto", those of strict tools
    do, and an engine's settings may make all of them strict."""
    choice = getattr(request, "tool_choice", None)
    return () if getattr(choice, "type", choice) == "none" else ("tools",)


def _plain(value: Any) -> Any:
    """Models and dataclasses of vLLM's as what JSON has."""
    if isinstance(value, list):
        return [_plain(one) for one in value]
    if hasattr(value, "model_dump"):
        return value.model_dump(by_alias=True)
    return value if isinstance(value, dict) else vars(value)


@dataclass(frozen=True, slots=True)
class _Level:
    """A value under its key, how deep it lies, and how often it may be repeated there."""

    key: str
    value: Any
    depth: int = 0
    times: int = 1

    def inside(self) -> Iterator[_Level]:
        """What is in it; schemas in texts are read."""
        depth = self.depth + 1
        if self.key in ("json", "structural_tag") and isinstance(self.value, str):
            yield _Level("", _parsed(self.value), depth, self.times)
        elif isinstance(self.value, dict):
            times = self.times * _count(self.value)
            for name, one in self.value.items():
                yield _Level(str(name), one, depth, times)
        elif isinstance(self.value, list):
            for one in self.value:
                yield _Level(self.key, one, depth, self.times)


def _check_length(wanted: Any, field: str, text: int) -> int:
    """Adds up all texts; stops at the limit, so that this is all that is done for a huge one."""
    left = [wanted]
    while left:
        value = left.pop()
        text += 1
        if isinstance(value, dict):
            text += sum(map(len, map(str, value)))
            left += value.values()
        elif isinstance(value, list):
            left += value
        elif isinstance(value, str):
            text += len(value)
        if text > MOST_TEXT or len(left) > MOST_TEXT:
            raise NotOffered(f"{field} has more than {MOST_TEXT} characters, the limit.", field)
    return text


@dataclass(slots=True)
class _Bill:
    """What the patterns, grammars and objects of one request come to."""

    field: str = ""
    pattern_text: int = 0
    patterns: int = 0
    grammars: int = 0
    optional_pairs: int = 0
    counted: int = 0

    def add(self, level: _Level) -> None:
        if level.depth > MOST_DEPTH:
            raise self._too_much(f"is nested deeper than {MOST_DEPTH} levels, the limit.")
        if isinstance(level.value, dict):
            self._add_object(level.value)
            self._add_count(level)
        elif isinstance(level.value, str) and level.key in ("pattern", "regex"):
            self._add_pattern(level.value)
        elif isinstance(level.value, str) and level.key == "grammar":
            self.grammars += grammars.size(level.value)
            self._check_size(self.grammars, "the grammar", grammars.MOST)

    def _add_pattern(self, pattern: str) -> None:
        self.pattern_text += len(pattern)
        if self.pattern_text > MOST_PATTERN_TEXT:
            raise self._too_much(
                f"has patterns of more than {MOST_PATTERN_TEXT} characters, the limit."
            )
        self.patterns += patterns.size(pattern)
        self._check_size(self.patterns, f"the pattern {pattern[:60]!r}", patterns.MOST)

    def _add_object(self, value: Mapping[str, Any]) -> None:
        by_pattern = value.get("patternProperties")
        for pattern in by_pattern if isinstance(by_pattern, dict) else ():
            self._add_pattern(str(pattern))
        optional = _optional(value)
        self.optional_pairs += optional**2
        if optional > MOST_OPTIONAL or self.optional_pairs > MOST_OPTIONAL_PAIRS:
            raise self._too_much(
                f"has an object in its schema with {optional} optional properties, at most "
                f"{MOST_OPTIONAL} are possible, and the squares of all such counts may add up to "
                f"{MOST_OPTIONAL_PAIRS}; put more properties into `required`."
            )

    def _add_count(self, level: _Level) -> None:
        count = _count(level.value)
        if count == 1:
            return
        self.counted += level.times * count
        if self.counted > MOST_COUNTED:
            raise self._too_much(
                f"has lengths ({', '.join(_COUNTS)}) that come to {self.counted}, multiplied where "
                f"one is inside the other; at most {MOST_COUNTED} is possible; use smaller ones."
            )

    def _check_size(self, size: int, what: str, most: int) -> None:
        if size > most:
            raise self._too_much(
                f"asks for too much with {what}: its repeats, and what may be empty or of any "
                f"length inside them, come to {size} with those of the request's others, at most "
                f"{most} is possible; use smaller or fewer repeats, with something fixed between "
                "them."
            )

    def _too_much(self, why: str) -> NotOffered:
        return NotOffered(f"{self.field} {why}", self.field)


def _optional(value: Mapping[str, Any]) -> int:
    """How many properties of an object may be left out."""
    named, needed = value.get("properties"), value.get("required")
    if not isinstance(named, dict):
        return 0
    needed = [name for name in needed if isinstance(name, str)] if isinstance(needed, list) else []
    return len(named.keys() - needed)


def _count(value: Mapping[str, Any]) -> int:
    """The largest length that a schema bounds; 1 where it bounds none."""
    bounds = (value.get(name) for name in _COUNTS)
    numbers = [one for one in bounds if isinstance(one, int | float) and one > 1]
    return int(min(max(numbers, default=1), _HUGE))


def _walk(wanted: Any) -> Iterator[_Level]:
    """Every value at any depth, without recursion."""
    left = [_Level("", wanted)]
    while left:
        level = left.pop()
        yield level
        left += level.inside()


def _parsed(text: str) -> Any:
    """None where it is no JSON, which vLLM tells the client."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
