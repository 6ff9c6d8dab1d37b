"""Calls of tools: the same tools, with the same arguments, that their schemas allow."""

from __future__ import annotations

import json

from penstock.evals.comparison.checks.between import beyond_self, harm
from penstock.evals.comparison.pair import Answer, Call, Pair
from penstock.evals.comparison.schemas import strangers_validator


def valid_arguments(pair: Pair) -> float | None:
    """Who of the two called a tool that there is not, or with arguments that it does not take."""
    if not pair.asked.tools:
        return None

    def wrong(answer: Answer) -> bool:
        return not all(_valid(call, pair) for call in answer.calls)

    return harm(pair, wrong)


def same_tools(pair: Pair) -> float | None:
    """Whether other tools are called than the primary's, beyond its own moods."""
    return beyond_self(pair, _other_tools) if pair.asked.tools else None


def same_calls(pair: Pair) -> float | None:
    """Whether anything about the calls is other than the primary's, beyond its own moods."""
    return beyond_self(pair, _other_calls) if pair.asked.tools else None


def _valid(call: Call, pair: Pair) -> bool:
    schema = pair.asked.tools.get(call.name)
    if schema is None:
        return False
    valid = strangers_validator({"type": "object", **schema})
    return valid is None or valid(call.arguments)


def _other_tools(one: Answer, other: Answer) -> float:
    return float(sorted(c.name for c in one.calls) != sorted(c.name for c in other.calls))


def _other_calls(one: Answer, other: Answer) -> float:
    return float(sorted(map(_call, one.calls)) != sorted(map(_call, other.calls)))


def _call(call: Call) -> tuple[str, str]:
    try:
        return call.name, json.dumps(json.loads(call.arguments), sort_keys=True)
    except (ValueError, RecursionError):
        return call.name, call.arguments
