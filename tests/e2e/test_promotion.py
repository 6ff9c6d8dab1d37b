"""A version is promoted on the evidence of an evaluation, by the commands that people type."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import Result

from tests.e2e.adapter_traffic import made, register
from tests.e2e.system import PENSTOCK, System, running
from tests.e2e.verbs import told

PASS, FAIL = 0, 3  # exit codes of the evaluation
PROMPTS = 40


@pytest.fixture(scope="module")
def system(folder: Path) -> Iterator[System]:
    """One simulated replica with a registered adapter, and a policy that asks for evidence."""
    settings = "tokens_per_second=5000 answer_tokens=8"
    options = ("--engine", "simulated", "--name", "sim", "--max-adapters", "2")
    with running(folder, *options, "--engine-args", settings) as system:
        register(system, "sim", "a@1", made(folder, "a@1"))
        done = penstock(system, "adapters", "policy", "evidence_for=live")
        assert done.exit_code == 0, done.output
        yield system


def penstock(system: System, *words: str) -> Result:
    """What the command did."""
    head = ("--admin", f"127.0.0.1:{system.admin_port}", "--data-dir", str(system.data))
    return told(*words, *head)


def evaluated(system: System, folder: Path, check: dict[str, object], *thresholds: str) -> int:
    """The exit code of an evaluation of a@1 that stores what it found."""
    dataset = folder / "dataset.jsonl"
    lines = ({"id": f"q-{n}", "prompt": f"Question {n}", "checks": check} for n in range(PROMPTS))
    dataset.write_text("".join(json.dumps(line) + "\n" for line in lines))
    argv = [
        str(PENSTOCK.with_name("python")), "-m", "penstock.evals.main", "adapter-regression",
        "--deployment", "sim", "--candidate", "a@1", "--baseline", "base",
        "--dataset", str(dataset), "--gateway", system.gateway_url, "--out", str(folder / "out"),
        "--store", "--admin", f"http://127.0.0.1:{system.admin_port}",
        "--token-file", str(system.data / "admin.token"), "--max-tokens", "16",
    ]  # fmt: skip
    for threshold in thresholds:
        argv += ["--thresholds", threshold]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode in (PASS, FAIL), done.stdout + done.stderr
    return done.returncode


def state(system: System) -> str:
    """How far a@1 has come."""
    return str(system.admin("adapters/a@1")["state"])


def test_a_version_is_promoted_when_an_evaluation_that_passed_is_stored_and_not_before(
    system: System, tmp_path: Path
) -> None:
    refused = penstock(system, "adapters", "promote", "a@1")
    assert refused.exit_code == 1
    assert "a@1 cannot become live: it has no evidence of kind adapter-regression" in refused.stderr

    missed: dict[str, object] = {"contains": ["words that nobody says"]}
    assert evaluated(system, tmp_path, missed, "min_contains_rate=0.85") == FAIL
    refused = penstock(system, "adapters", "promote", "a@1")
    assert refused.exit_code == 1
    assert "a@1 cannot become live: its newest adapter-regression" in refused.stderr
    assert "failed" in refused.stderr
    assert state(system) == "candidate"

    met: dict[str, object] = {"length": {"max_words": 60}}
    assert evaluated(system, tmp_path, met, "min_length_rate=0.85", "max_error_rate=0.0") == PASS
    promoted = penstock(system, "adapters", "promote", "a@1")
    assert promoted.exit_code == 0, promoted.output
    assert state(system) == "live"
    assert [each["passed"] for each in system.admin("adapters/a@1/evidence")] == [True, False]
