"""From an answer to figures: what each check says of it, and its score. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from penstock.evals.adapter_regression.checks import most_similar
from penstock.evals.adapter_regression.dataset import Prompt
from penstock.evals.comparison.patterns import found


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back for one request. With an error there is no text."""

    text: str = ""
    latency_ms: float = 0.0  # from the request's first byte sent to the answer's last byte read
    finish_reason: str = ""
    tokens: int | None = None  # of the answer, as it was billed
    error: str = ""  # in a line: what went wrong
    request_id: str = ""


@dataclass(frozen=True, slots=True)
class Scored:
    """An answer and its figures."""

    answer: Answer
    score: float  # mean of its checks, 0 to 1; an error is 0
    checks: Mapping[str, float]  # by kind; an error meets none
    similarity: float | None  # to the nearest reference; None: there is none
    refused: bool

    @property
    def failed(self) -> bool:
        """Whether there is no answer."""
        return bool(self.answer.error)


def scored(prompt: Prompt, answer: Answer, refusals: Sequence[re.Pattern[str]]) -> Scored:
    """The figures of an answer to that prompt."""
    failed = bool(answer.error)
    measured = {each.kind: 0.0 if failed else each.measure(answer.text) for each in prompt.checks}
    alike = None
    if prompt.references:
        alike = 0.0 if failed else most_similar(answer.text, prompt.references)
    return Scored(
        answer=answer,
        score=sum(measured.values()) / len(measured),
        checks=measured,
        similarity=alike,
        refused=not failed and found(answer.text, refusals),
    )
