"""`evals quantization-regression` from its command line to its files and its exit code."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from typer.testing import CliRunner, Result

import penstock.evals.quantization_regression as package
from penstock.evals.main import app
from tests.evals.fake_gateway import FakeGateway, Said, Scorer, fake_gateway, saying

SCHEMA = json.loads(Path(package.__file__).with_name("report.schema.json").read_text())
MODELS = ("--primary-model", "mini", "--candidate-model", "mini-int8")


def echo(prompt: str) -> str:
    """What a good model says."""
    return f"You said {prompt}"


def likely(log: float) -> Scorer:
    """Finds every token that likely."""
    return lambda tokens: [log] * len(tokens)


@pytest.fixture
def fake() -> Iterator[FakeGateway]:
    """A base, and what serves it quantised: as good, and a little less sure."""
    with fake_gateway({name: saying(None, echo) for name in ("mini", "mini-int8")}) as fake:
        fake.scorers = {"mini": likely(-0.5), "mini-int8": likely(-0.51)}
        yield fake


def rows(count: int, *slices: str) -> list[dict[str, Any]]:
    """So many lines, dealt out to the slices."""
    told = [{"id": f"p-{n}", "prompt": f"Hi {n}"} for n in range(count)]
    return (
        [{**each, "slice": slices[n % len(slices)]} for n, each in enumerate(told)]
        if (slices)
        else told
    )


def run(
    fake: FakeGateway, folder: Path, *more: str, dataset: Sequence[dict[str, Any]] | None = None
) -> Result:
    """Runs the command; `more` goes last and wins."""
    data = folder / "questions.jsonl"
    data.write_text("".join(json.dumps(each) + "\n" for each in dataset or rows(110)))
    told = {"primary": fake.url, "dataset": data, "out": folder / "out"}
    options = [word for name, value in told.items() for word in (f"--{name}", str(value))]
    return CliRunner().invoke(app, ["quantization-regression", *options, *MODELS, *more])


def report(folder: Path) -> Any:
    """The JSON that was left, which is of its schema."""
    told = json.loads((folder / "out" / "report.json").read_text())
    jsonschema.validate(told, SCHEMA, cls=jsonschema.Draft202012Validator)
    return told


def of(told: Any, name: str) -> Any:
    """One slice of a report."""
    return next(each for each in told["slices"] if each["name"] == name)


def test_a_good_quantisation_passes_and_the_reports_are_written(
    fake: FakeGateway, tmp_path: Path
) -> None:
    done = run(fake, tmp_path, "--api-key", "psk_1")
    assert done.exit_code == 0, done.output
    told = report(tmp_path)
    assert told["verdict"]["result"] == "pass"
    (everything,) = told["slices"]
    assert everything["perplexity"]["primary"] == pytest.approx(1.6487, abs=0.001)
    assert everything["figures"]["perplexity"]["value"] == pytest.approx(1.01, abs=0.001)
    assert (tmp_path / "out" / "report.md").read_text().startswith("## Pass: mini-int8 at ")
    assert "<h1>Pass: mini-int8 at " in (tmp_path / "out" / "report.html").read_text()
    assert fake.keys == {"Bearer psk_1"}


def test_all_three_score_the_same_tokens_of_the_primarys_answer_behind_its_prompt(
    fake: FakeGateway, tmp_path: Path
) -> None:
    run(fake, tmp_path, "--concurrency", "1", dataset=[{"prompt": "Hi"}])
    tokens = [ord(letter) for letter in "<Hi>You said Hi"]
    assert [each["prompt"] for each in fake.scored] == [tokens] * 3
    assert [each["model"] for each in fake.scored] == ["mini", "mini-int8", "mini"]
    assert report(tmp_path)["slices"][0]["tokens"] == len("You said Hi")


def test_a_model_that_finds_the_text_unlikely_fails_though_it_says_the_same(
    fake: FakeGateway, tmp_path: Path
) -> None:
    fake.scorers = {"mini": likely(-0.5), "mini-int8": likely(-1.5)}
    done = run(fake, tmp_path)
    assert done.exit_code == 3, done.output
    reasons = report(tmp_path)["verdict"]["reasons"]
    assert [each.split(" (")[0] for each in reasons] == ["all: Perplexity", "all: Logprobs"]


@pytest.mark.parametrize(
    ("said", "check"),
    [
        (Said(""), "empty"),
        (Said("I'm sorry, but no."), "refusal"),
        (Said("You said", finish_reason="length"), "finish_length"),
        (Said(status=503), "error"),
    ],
)
def test_a_model_that_answers_worse_fails_by_the_check_though_it_scores_alike(
    fake: FakeGateway, tmp_path: Path, said: Said, check: str
) -> None:
    fake.speakers = {**fake.speakers, "mini-int8": lambda prompt: said}
    done = run(fake, tmp_path)
    assert done.exit_code == 3, done.output
    findings = of(report(tmp_path), "all")["verdict"]["thresholds"]
    assert f"max_{check}" in [each["key"] for each in findings if each["result"] == "fail"]


def test_each_slice_has_a_gate_of_its_own(fake: FakeGateway, tmp_path: Path) -> None:
    def half(prompt: str) -> Said:
        refuses = int(prompt.split()[1]) % 2 == 1
        return Said("I'm sorry, but I can't help." if refuses else echo(prompt))

    fake.speakers = {**fake.speakers, "mini-int8": half}
    held = tmp_path / "held.toml"
    held.write_text(
        "max_refusal = 0.7\nmax_perplexity = 1.2\nmax_logprobs = 0.2\n"
        "[slices.safety]\nmax_refusal = 0.05\n"
    )
    done = run(
        *(fake, tmp_path, "--thresholds", str(held)),
        dataset=rows(124, "language", "safety"),  # each second prompt is of safety
    )
    assert done.exit_code == 3, done.output
    told = report(tmp_path)
    results = {each["name"]: each["verdict"]["result"] for each in told["slices"]}
    assert results == {"all": "pass", "language": "pass", "safety": "fail"}
    assert "misses thresholds of safety" in done.output


def test_few_prompts_of_a_slice_are_not_enough_to_tell(fake: FakeGateway, tmp_path: Path) -> None:
    done = run(fake, tmp_path, dataset=[*rows(110), {"prompt": "Hi 200", "slice": "grounding"}])
    assert done.exit_code == 4, done.output
    assert "grounding: Only 1 prompts could be compared" in done.output


def test_texts_that_could_not_be_scored_are_in_the_way_of_a_pass(
    fake: FakeGateway, tmp_path: Path
) -> None:
    def forgetful(tokens: list[int]) -> list[float]:
        return [-0.5] * (len(tokens) - (fake.scored[0]["prompt"] != tokens))

    fake.scorers = {"mini": likely(-0.5), "mini-int8": forgetful}
    done = run(fake, tmp_path, "--thresholds", "max_unscored_rate=0.2")
    assert done.exit_code == 4, done.output
    assert "99% of the primary's 110 texts could not be scored" in done.output


@pytest.mark.parametrize(
    ("more", "says"),
    [
        (("--dataset", "none.jsonl"), "none.jsonl cannot be read"),
        (("--thresholds", "max_tone=0.1"), "there is no threshold 'max_tone'"),
        (("--thresholds", "max_error=2"), "between 0 and 1"),
        (("--thresholds", "safety.max_error=0.1"), "no line of the dataset is in that slice"),
        (("--candidate-model", "mini"), "nothing to compare"),
    ],
)
def test_what_cannot_be_compared_is_said_before_anything_is_asked(
    fake: FakeGateway, tmp_path: Path, more: tuple[str, ...], says: str
) -> None:
    done = run(fake, tmp_path, *more)
    assert done.exit_code == 1
    assert says in done.output
    assert not fake.asked


def test_an_endpoint_that_cannot_score_is_no_measurement(fake: FakeGateway, tmp_path: Path) -> None:
    fake.scorers = {"mini": likely(-0.5)}
    done = run(fake, tmp_path)
    assert done.exit_code == 1
    assert "cannot score: /v1/completions: 400 no_logprobs" in done.output
    assert not (tmp_path / "out").exists()


def test_another_tokenizer_is_no_measurement(fake: FakeGateway, tmp_path: Path) -> None:
    with fake_gateway({"mini-int8": saying(None, echo)}) as other:
        other.letters = 7
        done = run(fake, tmp_path, "--candidate", other.url)
    assert done.exit_code == 1
    assert "make other tokens of p-0" in done.output


@pytest.mark.parametrize("slice_", ["all", "a b", 3])
def test_a_slice_has_a_name_of_its_own(fake: FakeGateway, tmp_path: Path, slice_: object) -> None:
    done = run(fake, tmp_path, dataset=[{"prompt": "Hi", "slice": slice_}])
    assert done.exit_code == 1
    assert "line 1 of the dataset: slice: must be" in done.output
