"""A run as one JSON document; `report.schema.json` says what each field is. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from penstock.evals.adapter_regression.asking import Asking, Version
from penstock.evals.adapter_regression.comparison import Comparison, Pair
from penstock.evals.adapter_regression.dataset import Dataset
from penstock.evals.adapter_regression.scores import Scored
from penstock.evals.adapter_regression.thresholds import Thresholds
from penstock.evals.comparison.gate import Verdict
from penstock.evals.comparison.intervals import plain

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
        "candidate": {**_version(run.candidate), **plain(run.comparison.candidate)},
        "baseline": {**_version(run.baseline), **plain(run.comparison.baseline)},
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
        "loss_rate": plain(found.loss_share),
        "win_rate": plain(found.win_share),
        "sign_test_p": plain(found.chance),
        "score_diff": plain(found.difference),
        "latency_ratio": plain(found.latency_ratio),
    }


def _pair(pair: Pair) -> dict[str, Any]:
    return {
        "id": pair.prompt.id,
        "messages": [dict(each) for each in pair.prompt.messages],
        "references": list(pair.prompt.references),
        "outcome": str(pair.outcome),
        "difference": plain(pair.difference),
        "candidate": _scored(pair.candidate),
        "baseline": _scored(pair.baseline),
    }


def _scored(scored: Scored) -> dict[str, Any]:
    told: dict[str, Any] = plain(scored)
    return {**told.pop("answer"), **told}
