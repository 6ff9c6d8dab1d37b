"""Answers and pairs, with little said of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from penstock.evals.comparison.pair import Answer, Asked, Call, Choice, Mark, Pair

TOOL = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOLS = Asked(tools={"weather": TOOL, "time": {}})


def said(text: str = "Hello there.", finish_reason: str = "stop", **more: Any) -> Answer:
    """An answer of one text."""
    return Answer((Choice(text, finish_reason),), **more)


def called(name: str, arguments: str) -> Answer:
    """An answer that calls a tool."""
    return Answer((Choice("", "tool_calls", (Call(name, arguments),)),))


def failed() -> Answer:
    """No answer."""
    return Answer(error="503 overloaded: come again")


def pair(
    candidate: Answer,
    primary: Answer | None = None,
    again: Answer | None = None,
    asked: Asked | None = None,
    session: str = "",
    marks: Sequence[Mark] = (),
) -> Pair:
    """A pair; the primary says hello unless it is told what else."""
    return Pair(
        id="r-1",
        primary=primary or said(),
        candidate=candidate,
        again=again,
        asked=asked or Asked(),
        session=session,
        marks=frozenset(marks),
    )


__all__ = ["TOOL", "TOOLS", "called", "failed", "pair", "said"]
