"""What a dialogue with tools is made of: tools, calls, results, and who says what.

Values and how they are written; `tools.py` and `answers_in_json.py` make them up.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from tools.default_model.grammar.turns import Turn

Piece = tuple[str, bool]
"""Words of the assistant, and whether they are learnt or only read."""


@dataclass(frozen=True, slots=True)
class Field:
    """An argument of a tool: its JSON type, and the values that it may have if they are few."""

    name: str
    kind: str = "string"
    required: bool = True
    options: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Tool:
    """A function that the client offers."""

    name: str
    fields: tuple[Field, ...]

    def signature(self) -> str:
        """The tool as the model reads it."""
        return f"{self.name}({','.join(_written(one) for one in self.fields)})"


def _written(one: Field) -> str:
    values = "|".join(one.options) or one.kind
    return f"{one.name}{'' if one.required else '?'}:{values}"


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a tool, and what the model is to say of its result."""

    name: str
    arguments: Mapping[str, Any]
    result: str = ""
    answer: str = ""

    def text(self) -> str:
        """The call in Hermes' format."""
        arguments = dumped(self.arguments)
        return f'<tool_call>\n{{"name": "{self.name}", "arguments": {arguments}}}\n{CLOSE}'


CLOSE: Final = "</tool_call>"


@dataclass(frozen=True, slots=True)
class Said:
    """What the assistant says: pieces of text, or calls."""

    pieces: tuple[Piece, ...] = ()
    calls: tuple[Call, ...] = ()

    def text(self) -> str:
        """All of it."""
        return "".join(text for text, _ in self.written())

    def written(self) -> tuple[Piece, ...]:
        """All of it in pieces. Calls follow each other with nothing between: a grammar that
        requires calls allows nothing else."""
        return (*self.pieces, *((call.text(), True) for call in self.calls))


@dataclass(frozen=True, slots=True)
class Heard:
    """What somebody else says: the user, the system or a tool."""

    role: str
    text: str


@dataclass(frozen=True, slots=True)
class Dialogue:
    """Tools, and messages in their order; the last one is the assistant's."""

    messages: tuple[Heard | Said, ...]
    tools: tuple[Tool, ...] = field(default=())


def spoken(text: str) -> Said:
    """The assistant in plain words."""
    return Said(((text, True),))


def turns_said(turns: list[Turn]) -> list[Heard | Said]:
    """Turns of a talk as messages."""
    return [
        message for turn in turns for message in (Heard("user", turn.question), spoken(turn.answer))
    ]


def dumped(value: Any, separators: tuple[str, str] = (", ", ": ")) -> str:
    """JSON as the chat template writes it."""
    return json.dumps(value, ensure_ascii=False, separators=separators)


def in_words(value: Any) -> str:
    """A value as a question says it: a text as it is, else JSON."""
    return value if isinstance(value, str) else dumped(value)
