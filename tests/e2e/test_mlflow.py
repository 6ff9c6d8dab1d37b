"""Verdicts as runs in MLflow, of the extra `penstock[mlflow]` in an environment of its own, with a
SQLite store and files as artifacts."""

from __future__ import annotations

import json
import os
import subprocess
import tomllib
import venv
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import installer
import locked
from places import LOCKS, ROOT, VENV
from tests.e2e.shadow_verdicts import chats, judged
from tests.e2e.system import System, running

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]

EXPERIMENT = "verdicts"
READ = """
import json, sys
import mlflow
client = mlflow.MlflowClient(tracking_uri=sys.argv[1])
where = client.get_experiment_by_name(sys.argv[2]).experiment_id
found = []
for run in client.search_runs([where]):
    files = {each.path: client.download_artifacts(run.info.run_id, each.path)
             for each in client.list_artifacts(run.info.run_id)}
    found.append({**run.data.to_dictionary(), "status": run.info.status, "name": run.info.run_name,
                  "files": {name: open(path).read() for name, path in files.items()}})
print(json.dumps(found))
"""


@dataclass(frozen=True)
class Environment:
    """Where MLflow is, and a store for runs."""

    python: Path
    store: Path

    @property
    def uri(self) -> str:
        return f"sqlite:///{self.store / 'runs.db'}"

    def run(self, *words: str) -> str:
        """What the command printed."""
        clean = {name: value for name, value in os.environ.items() if "MLFLOW" not in name}
        command = [str(self.python), *words]
        done = subprocess.run(
            command, cwd=self.store, env=clean, capture_output=True, text=True, check=False
        )
        assert done.returncode in (0, 3, 4), done.stdout + done.stderr
        return done.stdout

    def runs(self) -> list[dict[str, Any]]:
        """All that are in the store, the newest first."""
        found: list[dict[str, Any]] = json.loads(self.run("-c", READ, self.uri, EXPERIMENT))
        return found


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """What `pip install 'penstock[mlflow]'` makes: the extra beside what is locked for the core,
    and this checkout."""
    folder = tmp_path_factory.mktemp("mlflow")
    venv.create(folder / "env")
    python = folder / "env" / "bin" / "python"
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    core = folder / "core.txt"
    core.write_text(locked.pins((LOCKS / "core.txt").read_text()))
    subprocess.run(
        [
            *installer.uv("install", python),
            *("-c", str(core), *project["optional-dependencies"]["mlflow"]),
        ],
        check=True,
        env=installer.environment(),
    )
    (ours,) = VENV.glob("lib/python*/site-packages")
    (theirs,) = (folder / "env").glob("lib/python*/site-packages")
    (theirs / "checkout.pth").write_text(f"import site; site.addsitedir({str(ours)!r})\n")
    (folder / "store").mkdir()
    return Environment(python, folder / "store")


@pytest.fixture(scope="module")
def system(folder: Path) -> Iterator[System]:
    pace = "answer_tokens=8 ttft_ms=20 tokens_per_second=200"
    options = ("--engine", "simulated", "--name", "sim", "--engine-args", pace)
    with running(folder, *options, within=60) as system:
        yield system


async def test_a_shadows_verdict_is_a_run_with_figures_settings_and_reports(
    made: Environment, system: System
) -> None:
    spec = {"primary": "sim", "candidate": "sim", "checks": ["error"], "margins": {"error": 0.2}}
    exported: list[str] = []

    def enough(found: object) -> bool:
        """Exports it while it is there, once it is decided."""
        report = system.admin("shadows/trust/report")["report"]
        if report["verdict"] == "undecided":
            return False
        words = ("shadow", "export", "trust", "--mlflow", made.uri, "--experiment", EXPERIMENT)
        where = ("--data-dir", str(system.data))
        exported.append(made.run("-m", "penstock.control.main", *words, *where))
        return True

    await judged(system, "trust", spec, chats("sim", ["What is a run?"]), enough=enough)
    run = made.runs()[0]
    assert exported[0].startswith("shadow trust is run ")
    assert (run["name"], run["status"]) == ("trust", "FINISHED")
    assert (run["tags"]["verdict"], run["tags"]["verdict.error"]) == ("equal", "equal")
    assert (run["params"]["margin.error"], run["params"]["gates"]) == ("0.2", "error")
    assert run["params"]["share_permille"] == "1000"
    assert run["metrics"]["error.difference"] == 0
    assert run["metrics"]["sessions"] == run["metrics"]["error.pairs"] >= 50
    assert json.loads(run["files"]["report.json"])["verdict"] == "equal"
    assert run["files"]["report.md"].startswith("## Equal: sim beside sim")
    assert "<h1>Equal: sim beside sim</h1>" in run["files"]["report.html"]


def test_an_offline_comparison_is_one_too(made: Environment, system: System) -> None:
    data = made.store / "questions.jsonl"
    data.write_text("".join(json.dumps({"prompt": f"Hi {n}"}) + "\n" for n in range(60)))
    ends = ("--primary", system.gateway_url, "--candidate", system.gateway_url)
    held = ("--gate", "error", "--margin", "error=0.2", "--dataset", str(data))
    logged = ("--mlflow", made.uri, "--experiment", EXPERIMENT)
    made.run("-m", "penstock.evals.main", "shadow-compare", *ends, *held, *logged)
    run = made.runs()[0]
    assert run["tags"]["verdict"] == "equal"
    assert run["metrics"]["pairs"] == 60
    assert set(run["files"]) == {"report.json", "report.md", "report.html"}
