"""A run as one JSON document; `report.schema.json` says what each field is. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from penstock.evals.comparison.checks.scores import perplexity_of
from penstock.evals.comparison.gate import Result
from penstock.evals.comparison.intervals import plain
from penstock.evals.comparison.pair import Answer, Pair
from penstock.evals.quantization_regression.thresholds import CHECKS, Held, Thresholds
from penstock.evals.quantization_regression.verdict import Outcome, Slice
from penstock.evals.shadow_compare.asking import Asking, Line

FORMAT: Final = "penstock-quantization-regression/1"


@dataclass(frozen=True, slots=True)
class Run:
    """Everything that a report tells of."""

    at: datetime
    asking: Asking
    dataset: tuple[Line, ...]
    dataset_name: str
    sha256: str  # of the dataset's bytes
    pairs: tuple[Pair, ...]  # in its order
    held: Held
    outcome: Outcome

    @property
    def headline(self) -> str:
        """The verdict in a line."""
        who = f"{self.asking.candidate}, compared with {self.asking.primary},"
        slices = [each for each in self.outcome.slices if each.verdict.result is Result.FAIL]
        told = {
            Result.PASS: f"Pass: {who} meets its thresholds",
            Result.FAIL: f"Fail: {who} misses thresholds of {', '.join(e.name for e in slices)}",
            Result.INCONCLUSIVE: f"Not enough to tell whether {who} meets its thresholds",
        }
        return told[self.outcome.result]


def as_dict(run: Run) -> dict[str, Any]:
    """For JSON."""
    return {
        "format": FORMAT,
        "at": run.at.isoformat(timespec="seconds"),
        "primary": {"url": run.asking.primary.url, "model": run.asking.primary.model},
        "candidate": {"url": run.asking.candidate.url, "model": run.asking.candidate.model},
        "dataset": {"name": run.dataset_name, "sha256": run.sha256, "prompts": len(run.dataset)},
        "settings": {
            "seed": run.asking.seed,
            "temperature": run.asking.temperature,
            "max_tokens": run.asking.max_tokens,
            "concurrency": run.asking.concurrency,
            "self_permille": run.asking.self_permille,
        },
        "verdict": {
            "result": str(run.outcome.result),
            "reasons": list(run.outcome.reasons),
        },
        "slices": [_slice(each, run.held.of(each.name)) for each in run.outcome.slices],
        "prompts": [_pair(line, pair) for line, pair in zip(run.dataset, run.pairs, strict=True)],
    }


def _slice(part: Slice, held: Thresholds) -> dict[str, Any]:
    return {
        "name": part.name,
        "prompts": part.prompts,
        "counted": len(part.pairs),
        "left_out": dict(part.left_out),
        "confidence": held.confidence,
        "min_prompts": held.min_prompts,
        "max_baseline_error_rate": held.max_baseline_error_rate,
        "max_unscored_rate": held.max_unscored_rate,
        "verdict": part.verdict.as_dict(),
        "figures": {
            each.name: {"unit": str(each.unit), **plain(part.figures[each.name])}
            for each in CHECKS
            if each.name in part.figures
        },
        "tokens": part.tokens,
        "perplexity": _sides(*(part.perplexity or (None, None))),
        "unscored": plain(part.unscored),
    }


def _pair(line: Line, pair: Pair) -> dict[str, Any]:
    measured = {each.name: each.measure(pair) for each in CHECKS}
    return {
        "id": pair.id,
        "slice": line.slice or None,
        "session": pair.session or None,
        "messages": [dict(each) for each in line.question.messages],
        "left_out": sorted(map(str, pair.marks)),
        "differences": {k: plain(v) for k, v in measured.items() if v is not None},
        "perplexity": _sides(*map(perplexity_of, (pair.primary.logprobs, pair.candidate.logprobs))),
        "primary": _answer(pair.primary),
        "candidate": _answer(pair.candidate),
    }


def _answer(answer: Answer) -> dict[str, Any]:
    return {
        "text": answer.text,
        "error": answer.error,
        "finish_reason": answer.choices[0].finish_reason if answer.choices else "",
        "calls": [plain(each) for each in answer.calls],
    }


def _sides(primary: float | None, candidate: float | None) -> Mapping[str, float | None]:
    return {"primary": plain(primary), "candidate": plain(candidate)}
