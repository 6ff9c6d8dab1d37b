"""Small datasets and answers, and a run made of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from penstock.evals.adapter_regression.asking import Asking, Version
from penstock.evals.adapter_regression.comparison import Pair, compare, pair
from penstock.evals.adapter_regression.dataset import Dataset, Prompt, parse
from penstock.evals.adapter_regression.document import Run
from penstock.evals.adapter_regression.scores import Answer, scored
from penstock.evals.adapter_regression.thresholds import Thresholds, thresholds
from penstock.evals.adapter_regression.verdict import judge

CANDIDATE = Version.parse("mini", "pirate@2")
BASELINE = Version.parse("mini", "pirate@1")
REFUSALS = Thresholds().refusals

Speech = Callable[[int], Answer]


def lines(*prompts: Mapping[str, Any]) -> bytes:
    """The bytes of a dataset."""
    return "\n".join(map(json.dumps, prompts)).encode()


def dataset(*prompts: Mapping[str, Any]) -> Dataset:
    """A dataset of these lines."""
    return parse(lines(*prompts), REFUSALS)


def greetings(count: int) -> Dataset:
    """So many prompts that want a pirate's "Arr!"."""
    told = (
        {"id": f"p-{n}", "prompt": f"Greet {n}", "checks": {"contains": "Arr!"}}
        for n in range(count)
    )
    return dataset(*told)


def good(number: int) -> Answer:
    """What is asked for."""
    return Answer(f"Arr! {number}", latency_ms=10)


def bad(number: int) -> Answer:
    """Something else."""
    return Answer(f"Hello, {number}", latency_ms=10)


def none(number: int) -> Answer:
    """No answer at all."""
    return Answer(error="503 overloaded: come again")


def paired(prompt: Prompt, of: Answer, to: Answer, margin: float = 0.01) -> Pair:
    """Both answers, scored."""
    return pair(prompt, scored(prompt, of, REFUSALS), scored(prompt, to, REFUSALS), margin)


def run_of(
    given: Dataset, candidate: Speech, baseline: Speech, declared: Mapping[str, Any] | None = None
) -> Run:
    """A whole run, as if both had answered so."""
    held = thresholds(declared or {})
    pairs = [paired(p, candidate(n), baseline(n)) for n, p in enumerate(given.prompts)]
    comparison = compare(pairs, held.confidence, seed=1)
    return Run(
        at=datetime(2026, 3, 1, 12, 0, tzinfo=UTC),
        candidate=CANDIDATE,
        baseline=BASELINE,
        dataset=given,
        dataset_name="greetings.jsonl",
        asking=Asking("http://gateway.example"),
        thresholds=held,
        comparison=comparison,
        verdict=judge(comparison, held),
    )


__all__ = [
    "BASELINE",
    "CANDIDATE",
    "REFUSALS",
    "bad",
    "dataset",
    "good",
    "greetings",
    "lines",
    "none",
    "paired",
    "run_of",
]
