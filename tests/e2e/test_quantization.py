"""`evals quantization-regression` on real vLLM: int8 passes, int8 with a broken layer fails."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tests.e2e.system import System, eventually

pytestmark = [pytest.mark.vllm, pytest.mark.long, pytest.mark.timeout(900)]

DATASETS = Path(__file__).resolve().parents[2] / "evals" / "datasets"
MODEL = "penstock-mini"
_log = logging.getLogger(__name__)


def deployed(system: System, name: str, model: Path) -> None:
    """Serves the model too, beside what is served."""
    system.change("POST", "deployments", {"name": name, "model": str(model)})
    eventually(
        lambda: any(each["deployment"] == name for each in system.replicas()),
        within=180,
        what=f"{name} is ready",
    )


def compared(system: System, name: str, folder: Path) -> tuple[int, Any]:
    """The exit code and the report of that deployment beside its base."""
    options = {
        "primary": system.gateway_url,
        "primary-model": MODEL,
        "candidate-model": name,
        "dataset": DATASETS / "quantization.jsonl",
        "thresholds": DATASETS / "quantization.toml",
        "max-tokens": 120,
        "out": folder / name,
    }
    words = [word for key, value in options.items() for word in (f"--{key}", str(value))]
    from penstock.evals.main import (
        app,
    )  # half a second in each worker, and this runs in none of CI's

    done = CliRunner().invoke(app, ["quantization-regression", *words])
    assert done.exit_code in (0, 3, 4), done.output
    return done.exit_code, json.loads((folder / name / "report.json").read_text())


def test_int8_passes_in_every_slice_and_with_a_broken_layer_fails_in_every_slice(
    real: System, folder: Path
) -> None:
    from tests.fakes.int8_model import int8_model  # it needs torch, which nobody else here does

    found = {}
    for name, broken in (("int8", None), ("int8-broken", 1)):
        deployed(real, name, int8_model(folder / f"{name}-model", broken_layer=broken))
        code, report = compared(real, name, folder)
        for part in report["slices"]:
            missed = [e["key"] for e in part["verdict"]["thresholds"] if e["result"] == "fail"]
            _log.warning("%s, %s: %s, misses %s", name, part["name"], part["perplexity"], missed)
        results = {each["name"]: each["verdict"]["result"] for each in report["slices"]}
        found[name] = (code, results)
        real.change("DELETE", f"deployments/{name}")
    slices = ("all", "language", "grounding", "safety")
    assert found == {
        "int8": (0, dict.fromkeys(slices, "pass")),
        "int8-broken": (3, dict.fromkeys(slices, "fail")),
    }
