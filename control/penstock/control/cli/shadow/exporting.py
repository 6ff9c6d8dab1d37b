"""What a shadow counted, as JSON Lines: for a table elsewhere, or for keeping beside a decision."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any, Final

from penstock.control.admin.shadow.models import ShadowReportModel
from penstock.control.errors import Unavailable

PROGRAM: Final = (sys.executable, "-m", "penstock.evals.main", "log-to-mlflow")
SAYS: Final = "penstock evals: "
EXPERIMENT: Final = "penstock"
APART: Final = ("checks", "outcomes", "plan", "records")
"""Of a report what has lines of its own, says nothing that was counted, or quotes what was said."""


def as_lines(found: ShadowReportModel) -> Iterator[str]:
    """First what the shadow is and its verdict, then each check, then what became of requests."""
    settings = found.model_dump(mode="json", exclude={"report", "markdown", "html"})
    counted = {name: value for name, value in found.report.items() if name not in APART}
    yield _line("shadow", {**settings, **counted})
    for each in found.report["checks"]:
        yield _line("check", {"shadow": found.name, **each})
    for outcome, count in sorted(found.report["outcomes"].items()):
        yield _line("outcome", {"shadow": found.name, "outcome": outcome, "count": count})


def to_mlflow(found: ShadowReportModel, uri: str, experiment: str) -> str:
    """Leaves it as a run in MLflow, by the evals' program; the run's id. Raises `Unavailable`."""
    own = {"report", "markdown", "html", "name"}
    told = {
        "name": found.name,
        "report": found.report,
        "markdown": found.markdown,
        "html": found.html,
        "settings": found.model_dump(mode="json", exclude=own),
    }
    done = subprocess.run(
        PROGRAM,
        # Users of the machine see arguments, and an address may hold a password.
        input=json.dumps({"uri": uri, "experiment": experiment, "told": told}),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise Unavailable(done.stderr.strip().rpartition("\n")[2].removeprefix(SAYS))
    return done.stdout.strip()


def _line(kind: str, said: dict[str, Any]) -> str:
    return json.dumps({"kind": kind, **said})
