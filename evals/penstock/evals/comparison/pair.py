"""What is compared: one request's answers, as the client got one and as others would have answered.

Pure values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class Mark(StrEnum):
    """What makes a pair say little of the candidate."""

    CLIENT_LEFT = "client left"  # before the primary's answer was whole
    DEGRADED = "degraded"  # answered by a lower rung than was asked for
    TRIMMED = "trimmed"  # without its oldest turns
    REFUSED = "refused"  # the primary never saw it: limits, budget
    RESUMED = "resumed"  # continued by another replica
    NOT_COMPARABLE = "not comparable"  # the candidate cannot answer as asked


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a tool."""

    name: str
    arguments: str  # JSON, as the model wrote it


@dataclass(frozen=True, slots=True)
class Choice:
    """One of an answer's texts; most answers have one."""

    text: str = ""
    finish_reason: str = ""
    calls: tuple[Call, ...] = ()
    refusal: str = ""  # what the API itself calls a refusal


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back for one request, or the error."""

    choices: tuple[Choice, ...] = ()
    error: str = ""  # in a line: a status, a stream that broke
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    ttft: float | None = None  # seconds from the request sent to the first content
    tpot: float | None = None  # mean seconds for each later token
    total: float | None = None  # seconds to the last byte
    cost: float | None = None  # USD
    model: str = ""  # deployment and revision, as the answer names what made it
    adapter: str = ""  # name@version
    embedding: Sequence[float] | None = None  # of `text`, where an embedding deployment was asked
    logprobs: Sequence[float] | None = None  # natural, as who answered gives them to the primary's
    # text, token by token

    @property
    def text(self) -> str:
        """All choices' texts."""
        return "\n".join(each.text for each in self.choices)

    @property
    def calls(self) -> tuple[Call, ...]:
        """All choices' calls."""
        return tuple(call for each in self.choices for call in each.calls)

    @property
    def failed(self) -> bool:
        """Whether there is no whole answer."""
        return bool(self.error)


@dataclass(frozen=True, slots=True)
class Asked:
    """What the request asked for, as far as checks go by it."""

    json: bool = False  # an answer that is JSON
    schema: Mapping[str, Any] | None = None  # ... of this schema
    tools: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # arguments, by name

    @classmethod
    def of(cls, body: Mapping[str, Any]) -> Asked:
        """Reads a chat request. What it cannot read was not asked for: engines refuse that."""
        wanted = _object(body.get("response_format"))
        schema = _object(wanted.get("json_schema")).get("schema")
        tools = body.get("tools")
        functions = [
            _object(_object(tool).get("function"))
            for tool in (tools if isinstance(tools, list) else [])
        ]
        return cls(
            json=wanted.get("type") in ("json_object", "json_schema"),
            schema=schema if isinstance(schema, Mapping) else None,
            tools={
                each["name"]: _object(each.get("parameters"))
                for each in functions
                if isinstance(each.get("name"), str)
            },
        )


def _object(told: object) -> Mapping[str, Any]:
    return told if isinstance(told, Mapping) else {}


class Judged(StrEnum):
    """Which of two answers a judge prefers."""

    PRIMARY = "primary"
    CANDIDATE = "candidate"
    NEITHER = "neither"


@dataclass(frozen=True, slots=True)
class Pair:
    """One request's answers.

    `again` is the control: the primary, asked once more in the same way as the candidate was (as a
    shadow, when there is room, with a cold cache). A model differs from itself, and a shadow's
    times are not a client's: distances and times are compared with what lies between `again` and
    `primary`, never with nothing.
    """

    id: str
    primary: Answer
    candidate: Answer
    again: Answer | None = None
    asked: Asked = field(default_factory=Asked)
    session: str = ""  # a hash; empty: the request was a session of its own
    marks: frozenset[Mark] = frozenset()
    judged: tuple[Judged, Judged] | None = None  # with the primary's answer shown first, and second
