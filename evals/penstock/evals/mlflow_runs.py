"""Leaves a comparison as a run in MLflow: verdict, figures, settings, and the reports as artifacts.

MLflow is an extra, `penstock[mlflow]`, loaded when it is asked for; this file alone knows it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from penstock.evals.errors import EvalError

EXPERIMENT: Final = "penstock"
EXTRA: Final = "penstock[mlflow]"
COUNTS: Final = ("pairs", "sessions", "self_pairs", "sessions_missing")
FIGURES: Final = ("difference", "difference_of_all", "pairs", "pairs_missing")
LONGEST: Final = 500
"""Characters of a parameter: some stores take no more."""


@dataclass(frozen=True, slots=True)
class Told:
    """What a run says."""

    name: str
    report: Mapping[str, Any]  # as `comparison.report.as_dict` has it
    markdown: str
    html: str
    settings: Mapping[str, Any] = field(default_factory=dict)  # of the shadow, or of the run


def check_installed() -> None:
    """Raises `EvalError` where MLflow is not there."""
    try:
        import mlflow  # noqa: F401
    except ImportError as error:
        raise EvalError(f"MLflow is not installed: pip install '{EXTRA}' ({error})") from error


def log_run(uri: str, experiment: str, told: Told) -> str:
    """Logs it at that tracking store; the run's id. Raises `EvalError`."""
    check_installed()
    import mlflow
    from mlflow.entities import Metric, Param, RunTag

    try:
        client = mlflow.MlflowClient(tracking_uri=uri)
        known = client.get_experiment_by_name(experiment)
        where = known.experiment_id if known else client.create_experiment(experiment)
        run = client.create_run(where, run_name=told.name)
        made = run.info.run_id
        client.log_batch(
            made,
            metrics=[Metric(k, v, run.info.start_time, 0) for k, v in metrics(told.report)],
            params=[Param(key, value[:LONGEST]) for key, value in params(told)],
            tags=[RunTag(key, value) for key, value in tags(told.report)],
        )
        client.log_text(made, json.dumps(told.report, indent=1) + "\n", "report.json")
        client.log_text(made, told.markdown, "report.md")
        client.log_text(made, told.html, "report.html")
        client.set_terminated(made)
    except (mlflow.MlflowException, OSError) as error:
        raise EvalError(f"MLflow at {uri}: {str(error).splitlines()[0]}") from error
    return str(made)


def metrics(report: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    """Counts, and each check's figures; what could not be made has none."""
    yield from _numbers("", report, COUNTS)
    for each in report["checks"]:
        yield from _numbers(f"{each['name']}.", each, FIGURES)


def params(told: Told) -> Iterator[tuple[str, str]]:
    """What was compared, how, and what it was held to."""
    report = told.report
    yield from (("primary", report["primary"]), ("candidate", report["candidate"]))
    yield "alpha", f"{report['alpha']:g}"
    yield "gates", ",".join(each["name"] for each in report["checks"] if each["gate"])
    for each in report["checks"]:
        yield f"margin.{each['name']}", f"{each['margin']:g}"
    own = ("primary", "candidate", "margins", "checks")
    for key, value in told.settings.items():
        if key not in own and value not in (None, "", [], {}):
            yield key, value if isinstance(value, str) else json.dumps(value)


def tags(report: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The verdict, and each check's."""
    yield "verdict", report["verdict"]
    for each in report["checks"]:
        yield f"verdict.{each['name']}", each["verdict"]


def _numbers(
    prefix: str, values: Mapping[str, Any], names: tuple[str, ...]
) -> Iterator[tuple[str, float]]:
    for name in names:
        if (value := values.get(name)) is not None:
            yield f"{prefix}{name}", float(value)
