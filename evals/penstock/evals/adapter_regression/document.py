"""A run as one JSON document; `report.schema.json` says what each field is. Pure."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Final

from penstock.evals.adapter_regression.asking import Asking, Version
from penstock.evals.adapter_regression.comparison import Comparison, Pair, Side
from penstock.evals.adapter_regression.dataset import Dataset
from penstock.evals.adapter_regression.scores import Scored
from penstock.evals.adapter_regression.thresholds import Thresholds
from penstock.evals.comparison.gate import Verdict
from penstock.evals.comparison.intervals import as_dict as interval

FORMAT: Final = "penstock-adapter-regression/1"


@dataclass(frozen=True, slots=True)
class Run:
    """Everything that a report tells of."""

    at: datetime
    candidate: Version
    baseline: Version
    dataset: Dataset
    dataset_name: str
    asking: Asking
    thresholds: Thresholds
    comparison: Comparison
    verdict: Verdict


def as_dict(run: Run) -> dict[str, Any]:
    """For JSON."""
    return {
        "format": FORMAT,
        "at": run.at.isoformat(timespec="seconds"),
        "deployment": run.candidate.deployment,
        "candidate": {**_version(run.candidate), **_side(run.comparison.candidate)},
        "baseline": {**_version(run.baseline), **_side(run.comparison.baseline)},
        "dataset": {
            "name": run.dataset_name,
            "sha256": run.dataset.sha256,
            "prompts": len(run.dataset.prompts),
        },
        "settings": _settings(run),
        "verdict": run.verdict.as_dict(),
        "comparison": _comparison(run.comparison),
        "prompts": [_pair(each) for each in run.comparison.pairs],
    }


def _version(version: Version) -> dict[str, Any]:
    ref = None if version.ref is None else str(version.ref)
    return {"model": version.model, "adapter": ref}


def _side(side: Side) -> dict[str, Any]:
    return {
        "asked": side.asked,
        "errors": interval(side.errors),
        "score": interval(side.score),
        "checks": {kind: interval(found) for kind, found in side.checks.items()},
        "similarity": interval(side.similarity),
        "refusals": interval(side.refusals),
        "cut_off": side.cut_off,
        "latency_p50_ms": _rounded(side.latency_p50_ms),
        "latency_p95_ms": _rounded(side.latency_p95_ms),
        "words_p50": side.words_p50,
    }


def _settings(run: Run) -> dict[str, Any]:
    return {
        "seed": run.asking.seed,
        "temperature": run.asking.temperature,
        "max_tokens": run.asking.max_tokens,
        "concurrency": run.asking.concurrency,
        "confidence": run.thresholds.confidence,
        "tie_margin": run.thresholds.tie_margin,
        "min_prompts": run.thresholds.min_prompts,
        "max_baseline_error_rate": run.thresholds.max_baseline_error_rate,
        "refusal_patterns": [each.pattern for each in run.thresholds.refusals],
    }


def _comparison(found: Comparison) -> dict[str, Any]:
    return {
        "compared": found.compared,
        "wins": found.wins,
        "losses": found.losses,
        "ties": found.ties,
        "not_compared": len(found.pairs) - found.compared,
        "loss_rate": interval(found.loss_share),
        "win_rate": interval(found.win_share),
        "sign_test_p": _rounded(found.chance),
        "score_diff": interval(found.difference),
        "latency_ratio": interval(found.latency_ratio),
    }


def _pair(pair: Pair) -> dict[str, Any]:
    return {
        "id": pair.prompt.id,
        "messages": [dict(each) for each in pair.prompt.messages],
        "references": list(pair.prompt.references),
        "outcome": str(pair.outcome),
        "difference": _rounded(pair.difference),
        "candidate": _scored(pair.candidate),
        "baseline": _scored(pair.baseline),
    }


def _scored(scored: Scored) -> dict[str, Any]:
    answer = asdict(scored.answer)
    answer["latency_ms"] = _rounded(scored.answer.latency_ms)
    return {
        **answer,
        "score": _rounded(scored.score),
        "checks": {kind: _rounded(value) for kind, value in scored.checks.items()},
        "similarity": _rounded(scored.similarity),
        "refused": scored.refused,
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 6)
