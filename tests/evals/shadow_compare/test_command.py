"""`evals shadow-compare` from its command line to its files and its exit code."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from penstock.evals.main import app
from tests.evals.fake_gateway import FakeGateway, Said, Speaker, fake_gateway, saying
from tests.evals.recordings import chat, written

GATES = ("error", "finish_length", "empty")
COARSE = [f"--{name}" for each in GATES for name in (f"gate={each}", f"margin={each}=0.2")]


def echo(prompt: str) -> str:
    """What a good model says."""
    return f"You said {prompt}"


@pytest.fixture
def fakes() -> Iterator[tuple[FakeGateway, FakeGateway]]:
    """What serves today, and a candidate that is like it."""
    with ExitStack() as stack:
        names = ("mini", "maxi")
        started = [stack.enter_context(fake_gateway({each: saying(None, echo)})) for each in names]
        yield started[0], started[1]


def run(
    fakes: tuple[FakeGateway, FakeGateway], folder: Path, *more: str, questions: int = 120
) -> Result:
    """Runs the command for a dataset of so many questions; `more` goes last and wins."""
    data = folder / "questions.jsonl"
    data.write_text("".join(json.dumps({"prompt": f"Hi {n}"}) + "\n" for n in range(questions)))
    primary, candidate = fakes
    told = {"primary": primary.url, "candidate": candidate.url, "dataset": data}
    options = [word for name, value in told.items() for word in (f"--{name}", str(value))]
    return CliRunner().invoke(app, ["shadow-compare", *options, *COARSE, *more])


def test_like_answers_are_equal_and_the_reports_are_written(
    fakes: tuple[FakeGateway, FakeGateway], tmp_path: Path
) -> None:
    names = {"json": "r.json", "markdown": "r.md", "html": "r.html"}
    files = [word for kind, name in names.items() for word in (f"--{kind}", str(tmp_path / name))]
    done = run(fakes, tmp_path, *files, "--self", "500", "--api-key", "psk_1")
    assert done.exit_code == 0, done.output
    told = json.loads((tmp_path / "r.json").read_text())
    assert (told["verdict"], told["pairs"]) == ("equal", 120)
    assert 30 < told["self_pairs"] < 90
    assert (tmp_path / "r.md").read_text().startswith("## Equal: maxi at ")
    assert "<h1>Equal: maxi at " in (tmp_path / "r.html").read_text()
    primary, candidate = fakes
    assert len(candidate.asked) == 121
    assert len(primary.asked) == 121 + told["self_pairs"]
    assert primary.keys == candidate.keys == {"Bearer psk_1"}
    assert candidate.asked[0] == {
        "model": "maxi",
        "messages": [{"role": "user", "content": "Hi 0"}],
        "temperature": 0.0,
        "max_tokens": 256,
        "seed": 0,
        "stream": True,
        "stream_options": {"include_usage": True},
    }


@pytest.mark.parametrize(
    ("speaker", "reason"),
    [
        (lambda prompt: Said(echo(prompt), finish_reason="length"), "finish_length"),
        (lambda prompt: Said(""), "empty"),
        (lambda prompt: Said(status=503), "error"),
        (lambda prompt: Said(body=b"data: {}\n\n"), "error"),
    ],
)
def test_a_worse_candidate_is_said_to_be_and_by_which_check(
    fakes: tuple[FakeGateway, FakeGateway], tmp_path: Path, speaker: Speaker, reason: str
) -> None:
    fakes[1].speakers = {"maxi": speaker}
    done = run(fakes, tmp_path)
    assert done.exit_code == 3, done.output
    assert f"- {reason} (" in done.output


def test_few_questions_are_undecided_and_it_says_how_many_more(
    fakes: tuple[FakeGateway, FakeGateway], tmp_path: Path
) -> None:
    done = run(fakes, tmp_path, "--margin", "error=0.01", questions=60)
    assert done.exit_code == 4, done.output
    assert "more pairs" in done.output


def test_a_limit_of_the_caller_is_no_error_of_the_candidate(
    fakes: tuple[FakeGateway, FakeGateway], tmp_path: Path
) -> None:
    fakes[1].speakers = {"maxi": lambda prompt: Said(status=429)}
    done = run(fakes, tmp_path, questions=60)
    assert done.exit_code == 4, done.output
    assert "Left out, refused: 60." in done.output


def test_candidate_and_control_are_asked_before_the_primary_in_either_order(
    tmp_path: Path,
) -> None:
    with fake_gateway({"mini": saying(None, echo), "maxi": saying(None, echo)}) as fake:
        models = ("--primary-model", "mini", "--candidate-model", "maxi", "--concurrency", "1")
        done = run((fake, fake), tmp_path, *models, questions=30)
    assert done.exit_code == 4, done.output
    thirds = [[each["model"] for each in fake.asked[n : n + 3]] for n in range(2, 92, 3)]
    assert all(each[2] == "mini" for each in thirds)
    assert {tuple(each[:2]) for each in thirds} == {("mini", "maxi"), ("maxi", "mini")}


@pytest.mark.parametrize(
    ("more", "says"),
    [
        (("--dataset", "none.jsonl"), "none.jsonl cannot be read"),
        (("--margin", "tone=0.1"), "there is no check 'tone'"),
        (("--margin", "error=much"), "'much' is no number"),
        (("--guardrail", "x=("), "no regular expression"),
        (("--candidate", "http://127.0.0.1:9"), "does not tell its models"),
        (("--candidate", "http://127.0.0.1:9", "--candidate-model", "m"), "is it there?"),
        (("--candidate-model", "other"), "404 model_not_found"),
        (("--mlflow", "sqlite:///x.db"), "pip install 'penstock[mlflow]'"),
        (("--json", "/no/such/folder/r.json"), "cannot be written"),
    ],
)
def test_what_cannot_be_compared_is_said_in_a_line(
    fakes: tuple[FakeGateway, FakeGateway], tmp_path: Path, more: tuple[str, ...], says: str
) -> None:
    done = run(fakes, tmp_path, *more, questions=1)
    assert done.exit_code == 1
    assert says in done.output


def test_an_endpoint_of_many_models_has_to_be_told_which(tmp_path: Path) -> None:
    speakers = {"mini": saying(None, echo), "maxi": saying(None, echo)}
    with fake_gateway(speakers) as fake:
        done = run((fake, fake), tmp_path, questions=1)
    assert done.exit_code == 1
    assert "serves mini, maxi: say which" in done.output


def test_adapters_beside_the_only_deployment_have_to_be_asked_for_by_name(
    fakes: tuple[FakeGateway, FakeGateway], tmp_path: Path
) -> None:
    fakes[0].speakers = {"mini": saying(None, echo), "mini:pirate": saying(None, echo)}
    done = run(fakes, tmp_path, questions=60)
    assert done.exit_code == 0, done.output
    assert {each["model"] for each in fakes[0].asked} == {"mini"}


def test_lines_of_one_session_count_once_and_a_session_is_a_text(
    fakes: tuple[FakeGateway, FakeGateway], tmp_path: Path
) -> None:
    data, out = tmp_path / "turns.jsonl", tmp_path / "r.json"
    turns = [{"prompt": f"Hi {n}", "session": f"s-{n // 4}"} for n in range(40)]
    data.write_text("\n".join(map(json.dumps, turns)))
    done = run(fakes, tmp_path, "--dataset", str(data), "--json", str(out))
    assert done.exit_code == 4, done.output
    told = json.loads(out.read_text())
    assert (told["pairs"], told["sessions"]) == (40, 10)
    data.write_text(json.dumps({"prompt": "Hi", "session": 3}))
    assert "session: must be a text" in run(fakes, tmp_path, "--dataset", str(data)).output


def test_a_plan_is_told_without_asking_anybody() -> None:
    done = CliRunner().invoke(app, ["shadow-plan", "--pairs-a-day", "1000", "--gate", "ttft"])
    assert done.exit_code == 0, done.output
    assert "| ttft | 0.07 |" in done.output
    refused = CliRunner().invoke(app, ["shadow-plan", "--pairs-a-day", "1000", "--gate", "tone"])
    assert refused.exit_code == 1
    assert "there is no check 'tone'" in refused.output


def test_a_simulation_prints_its_table() -> None:
    done = CliRunner().invoke(app, ["shadow-simulation", "--shadows", "2", "--pairs", "5"])
    assert done.exit_code == 0, done.output
    assert done.output.startswith("| pairs that differ |")


def test_a_recording_is_asked_in_its_order_as_it_was_and_its_sessions_count_once(
    fakes: tuple[FakeGateway, FakeGateway], tmp_path: Path
) -> None:
    body = {"model": "old", "messages": [{"role": "user", "content": "x"}], "top_p": 0.5, "n": 1}
    requests = [chat(n, at=float(-n), session=f"s-{n // 4}") for n in range(40)]
    other = chat(90, path="/v1/embeddings", body={"input": "x"})
    file = written(tmp_path / "r.jsonl", *requests, chat(41, at=-90.0, body=body), other)
    out = tmp_path / "r.json"
    urls = ("--primary", fakes[0].url, "--candidate", fakes[1].url, "--self", "0")
    more = ("--recording", str(file), "--json", str(out), "--concurrency", "1")
    done = CliRunner().invoke(app, ["shadow-compare", *urls, *COARSE, *more])
    assert done.exit_code == 4, done.output
    told = json.loads(out.read_text())
    assert (told["pairs"], told["sessions"]) == (41, 11)
    assert "1 requests of the recording are no chats" in done.output
    streamed = {"stream": True, "stream_options": {"include_usage": True}}
    assert fakes[1].asked[1] == {**body, "model": "maxi", **streamed}
    said = [each["messages"][0]["content"] for each in fakes[1].asked[2:]]
    assert said == [f"Hi {n}" for n in reversed(range(40))]


@pytest.mark.parametrize("both", [True, False])
def test_either_a_dataset_or_a_recording_is_named(
    fakes: tuple[FakeGateway, FakeGateway], tmp_path: Path, both: bool
) -> None:
    file = str(written(tmp_path / "r.jsonl", chat(1, path="/classify")))
    named = ["--dataset", file, "--recording", file] if both else []
    command = ["shadow-compare", "--primary", fakes[0].url, "--candidate", fakes[1].url]
    assert "name either a --dataset or a --recording" in (
        CliRunner().invoke(app, [*command, *named]).output
    )
    no_chat = CliRunner().invoke(app, [*command, "--recording", file])
    assert "the recording holds no chat" in no_chat.output
