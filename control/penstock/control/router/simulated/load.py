"""Requests for simulated engines: made up, or as a recording has them: lengths, times, sessions."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from random import Random
from typing import Any, Final

SHARED: Final = 0.75  # of a prompt, that the prompts of a session have in common
CHARACTERS: Final = 4  # of a token, where a recording says no more
ANSWER: Final = 100  # tokens, likewise
MOST_TOKENS: Final = 1 << 24  # of a prompt or an answer
LATEST: Final = 1e11  # seconds; beyond, a step of an engine would be lost in them


class BadRecording(ValueError):
    """It cannot be used: which line, and why."""


@dataclass(frozen=True, slots=True)
class Arrival:
    """One request."""

    at: float  # seconds
    prompt: int  # tokens
    answer: int
    session: str = ""  # empty: its prompt begins as no other does

    @property
    def shared(self) -> int:
        """Tokens that the prompts of its session have in common."""
        return int(self.prompt * SHARED) if self.session else 0


def made_up(
    requests: int, rate: float, prompt: int, answer: int, sessions: int, seed: int = 1
) -> list[Arrival]:
    """So many, at so many a second, in so many sessions; 0: each its own."""
    random, at, found = Random(seed), 0.0, []
    for _ in range(requests):
        at += random.expovariate(rate)
        session = f"s{random.randrange(sessions)}" if sessions else ""
        found.append(Arrival(at, prompt, answer, session))
    return found


def recorded(lines: Iterable[bytes], limit: int | None = None) -> list[Arrival]:
    """Those of a recording, in order of arrival. Raises BadRecording."""
    found = []
    for number, line in enumerate(lines, 1):
        try:
            told = json.loads(line) if line.strip() else {"format": ""}
            if "format" not in told:  # its first line is the header
                found.append(_arrival(told))
        except (ValueError, TypeError, KeyError, AttributeError, OverflowError) as error:
            raise BadRecording(f"line {number} is no request of a recording: {error}") from error
    if not found:
        raise BadRecording("it holds no request")
    found.sort(key=lambda each: each.at)
    first = found[0].at
    return [replace(each, at=each.at - first) for each in found[:limit]]


def _arrival(told: Mapping[str, Any]) -> Arrival:
    answered, body = told.get("answered") or {}, told["body"]
    usage = answered.get("usage") or {}
    prompt = usage.get("prompt_tokens") or len(json.dumps(body)) // CHARACTERS
    answer = usage.get("completion_tokens") or body.get("max_tokens") or ANSWER
    at = float(told["at"])
    if not abs(at) < LATEST:
        raise ValueError("at is no time")
    if max(prompt := int(prompt), answer := int(answer)) > MOST_TOKENS:
        raise ValueError(f"it has more than {MOST_TOKENS:,} tokens")
    return Arrival(at, max(1, prompt), max(1, answer), str(told.get("session", "")))
