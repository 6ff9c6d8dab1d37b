"""`evals adapter-regression` from its command line to its files, its evidence and its exit code."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from penstock.evals.main import app
from tests.evals.adapter_regression.examples import lines
from tests.evals.fake_gateway import (
    DIGEST,
    KEY,
    TOKEN,
    FakeGateway,
    Said,
    fake_gateway,
    saying,
)


def in_pirate(prompt: str) -> str:
    """What the dataset wants."""
    return f"Arr! {prompt}"


@pytest.fixture
def fake() -> Iterator[FakeGateway]:
    """Two versions that are alike, and a base model that does not know how."""
    speakers = {
        "mini:pirate@2": saying("pirate@2", in_pirate),
        "mini:pirate@1": saying("pirate@1", in_pirate),
        "mini": saying(None, lambda prompt: prompt),
    }
    with fake_gateway(speakers) as fake:
        yield fake


def run(fake: FakeGateway, folder: Path, *more: str, prompts: int = 40) -> Result:
    """Runs the command for a dataset of so many prompts; `more` goes last and wins."""
    data, token = folder / "greetings.jsonl", folder / "token"
    checks = {"contains": "Arr!"}
    data.write_bytes(lines(*({"prompt": f"Greet {n}", "checks": checks} for n in range(prompts))))
    token.write_text(TOKEN + "\n")
    told = {
        "gateway": fake.url,
        "admin": fake.url,
        "token-file": token,
        "deployment": "mini",
        "candidate": "pirate@2",
        "baseline": "pirate@1",
        "dataset": data,
        "out": folder / "out",
    }
    options = [word for name, value in told.items() for word in (f"--{name}", str(value))]
    return CliRunner().invoke(app, ["adapter-regression", *options, *more])


def test_a_run_that_passes_leaves_its_reports_and_its_evidence(
    fake: FakeGateway, tmp_path: Path
) -> None:
    held = tmp_path / "held.toml"
    held.write_text("max_loss_rate = 0.15\nmin_contains_rate = 0.85\n")
    words = ("--thresholds", str(held), "--thresholds", "max_latency_ratio=1000")
    done = run(fake, tmp_path, "--store", "--api-key", KEY, *words)
    assert done.exit_code == 0, done.output
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    assert report["verdict"]["result"] == "pass"
    assert len(report["verdict"]["thresholds"]) == 5
    assert (tmp_path / "out" / "report.md").read_text().startswith("## Pass")
    assert "<h1>Pass" in (tmp_path / "out" / "report.html").read_text()
    ((path, evidence),) = fake.evidence
    assert path == "/admin/v1/adapters/pirate@2/evidence"
    assert (evidence["passed"], evidence["digest"]) == (True, DIGEST)
    assert evidence["report"] == report
    assert fake.keys == {f"Bearer {KEY}"}


def test_a_worse_version_fails_and_that_is_stored_too(fake: FakeGateway, tmp_path: Path) -> None:
    fake.speakers = {**fake.speakers, "mini:pirate@2": saying("pirate@2", lambda prompt: prompt)}
    done = run(fake, tmp_path, "--store")
    assert done.exit_code == 3, done.output
    assert "lost 40" in done.output
    assert [evidence["passed"] for _, evidence in fake.evidence] == [False]


def test_an_adapter_is_compared_with_the_base_model(fake: FakeGateway, tmp_path: Path) -> None:
    done = run(fake, tmp_path, "--baseline", "base", "--store")
    assert done.exit_code == 0, done.output
    assert "won 40" in done.output
    assert [evidence["against"] for _, evidence in fake.evidence] == [None]


def test_few_prompts_are_not_enough(fake: FakeGateway, tmp_path: Path) -> None:
    done = run(fake, tmp_path, prompts=5)
    assert done.exit_code == 4, done.output
    assert "Only 5 prompts could be compared" in done.output
    assert not fake.evidence


def test_an_answer_of_another_version_ends_the_run_without_a_report(
    fake: FakeGateway, tmp_path: Path
) -> None:
    lying = {"mini:pirate@2": lambda prompt: Said(in_pirate(prompt), adapter="pirate@1")}
    fake.speakers = {**fake.speakers, **lying}
    done = run(fake, tmp_path, "--store")
    assert done.exit_code == 1
    assert "mini:pirate@2 was asked for, and x-penstock-adapter-version says 'pirate@1'" in (
        done.output
    )
    assert not (tmp_path / "out").exists()
    assert not fake.evidence


@pytest.mark.parametrize(
    ("more", "says"),
    [
        (("--candidate", "base"), "the base model is no adapter"),
        (("--candidate", "pirate@1"), "nothing to compare"),
        (("--candidate", "pirate"), "must be name@version"),
        (("--dataset", "none.jsonl"), "none.jsonl cannot be read"),
        (("--thresholds", "none.toml"), "none.toml cannot be read"),
        (("--thresholds", "max_loss=1"), "there is no threshold 'max_loss'"),
        (("--thresholds", "min_schema_validity=1"), "no prompt of the dataset has the check"),
        (("--store", "--token-file", "none"), "none cannot be read"),
    ],
)
def test_what_cannot_be_measured_is_said_before_anything_is_asked(
    fake: FakeGateway, tmp_path: Path, more: tuple[str, ...], says: str
) -> None:
    done = run(fake, tmp_path, *more)
    assert done.exit_code == 1
    assert says in done.output
    assert not fake.asked
