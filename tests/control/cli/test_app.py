"""The `penstock` command line itself."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib import metadata

import pytest
from typer.testing import CliRunner

from penstock.control.cli.app import app

VERBS = (
    "serve",
    "head",
    "node",
    "status",
    "describe",
    "events",
    "requests",
    "explain",
    "logs",
    "deploy",
    "scale",
    "set",
    "delete",
    "drain",
    "replace",
    "spend",
    "run",
    "test",
    "backup",
    "restore",
    "apply",
    "diff",
    "fit",
    "export",
    "schema",
)


@pytest.fixture
def runner() -> CliRunner:
    return CliRunner(env={"COLUMNS": "120", "NO_COLOR": "1", "TERM": "dumb"})


def test_the_version_is_the_packages(runner: CliRunner) -> None:
    reply = runner.invoke(app, ["--version"])
    assert reply.exit_code == 0
    assert reply.output.strip() == f"penstock {metadata.version('penstock')}"


def test_help_names_every_verb(runner: CliRunner) -> None:
    reply = runner.invoke(app, ["--help"])
    assert reply.exit_code == 0
    assert all(verb in reply.output for verb in VERBS)


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_help_with_an_example(runner: CliRunner, verb: str) -> None:
    reply = runner.invoke(app, [verb, "-h"])
    assert reply.exit_code == 0
    assert f"penstock {verb}" in reply.output
    assert "Example" in reply.output


@pytest.mark.parametrize("verb", ["serve", "head", "node", "status", "tokens"])
def test_a_verb_does_not_wait_for_the_others(verb: str) -> None:
    script = (
        "import sys; from typer.testing import CliRunner; from penstock.control.cli.app import app;"
        f" assert CliRunner().invoke(app, ['{verb}', '-h']).exit_code == 0;"
        " print({'documents', 'canary.verbs', 'rollout.engines'}"
        " & {name.removeprefix('penstock.control.cli.') for name in sys.modules})"
    )
    found = subprocess.check_output([sys.executable, "-c", script], text=True, timeout=60)
    assert found == "set()\n"


def test_an_unknown_verb_is_told_those_that_are_like_it(runner: CliRunner) -> None:
    reply = runner.invoke(app, ["stats"])
    assert reply.exit_code == 2
    assert "Did you mean 'status'" in reply.stderr


@pytest.mark.parametrize(
    "variable",
    ["MODEL", "ENGINE", "ENGINE_ARGS", "REPLICAS", "NAME", "GATEWAY", "ADMIN", "RPC", "DATA_DIR"],
)
def test_every_option_of_serve_can_come_from_the_environment(
    runner: CliRunner, variable: str
) -> None:
    assert f"PENSTOCK_{variable}" in runner.invoke(app, ["serve", "--help"]).output


@pytest.mark.parametrize(
    ("verb", "own"),
    [
        ("serve", ["--gateway-metrics", "--head-metrics", "--node-metrics"]),
        ("head", ["--gateway-metrics", "--head-metrics"]),
        ("node", ["--node-metrics"]),
    ],
)
def test_who_says_metrics_as_it_was_called_before_is_told_what_it_is_called_now(
    runner: CliRunner, verb: str, own: list[str]
) -> None:
    told = runner.invoke(app, [verb, "--metrics", "127.0.0.1:9090"])
    assert told.exit_code == 2
    assert "No such option: --metrics" in told.output
    assert all(name in told.output for name in own)


def test_a_verb_does_not_wait_for_what_only_a_head_needs() -> None:
    script = (
        "import sys; from penstock.control.cli.app import VERBS, app;"
        " import typer; group = typer.main.get_group(app);"
        " assert all(group.get_command(None, each) for each in VERBS);"
        " print({'fastapi', 'starlette', 'cryptography'} & sys.modules.keys())"
    )
    found = subprocess.check_output([sys.executable, "-c", script], text=True, timeout=60)
    assert found == "set()\n"


def test_no_verb_shows_help(runner: CliRunner) -> None:
    assert "serve" in runner.invoke(app, []).output


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["serve", "./no-such-model"], "./no-such-model"),
        (["serve", "--engine-arg", "oops"], "oops"),
        (["serve", "--adapter", "oops"], "alias=name@version=SOURCE"),
        (["serve", "--engine", "simulated", "--gateway", "8080"], "--gateway"),
        (["node", "--head", "nowhere"], "--head"),
        (["head", "--admin", "nowhere"], "--admin"),
        (["head", "--deep-check-every", "-1"], "--deep-check-every"),
        (["status", "--admin", "127.0.0.1:1"], "http://127.0.0.1:1"),
        (["status", "--admin", "http://[oops"], "--admin"),
    ],
)
def test_a_mistake_is_one_line_that_names_it_and_exit_code_1(
    runner: CliRunner, arguments: list[str], words: str
) -> None:
    reply = runner.invoke(app, arguments)
    assert reply.exit_code == 1
    lines = reply.stderr.strip().splitlines()
    assert len(lines) == 1
    assert lines[0].startswith(f"penstock {arguments[0]}: error: ")
    assert words in lines[0]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["mini", "-1"], "'replicas': Input should be greater than or equal to 0"),
        (["mini", "two"], "'replicas': Input should be a valid integer"),
        (["mini", "1", "--nonsense"], "--nonsense"),
    ],
)
def test_what_is_no_number_of_replicas_is_said(
    runner: CliRunner, words: list[str], message: str
) -> None:
    reply = runner.invoke(app, ["scale", *words])
    assert reply.exit_code == 2
    assert message in reply.stderr


def test_an_unknown_engine_is_refused_with_the_known_ones(runner: CliRunner) -> None:
    reply = runner.invoke(app, ["serve", "--engine", "llama"])
    assert reply.exit_code == 2
    assert "simulated" in reply.stderr


def test_the_module_runs_as_the_command() -> None:
    reply = subprocess.run(
        [sys.executable, "-m", "penstock.control.main", "--version"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert reply.stdout.startswith("penstock ")


@pytest.mark.parametrize("args", [["--version"], ["status", "--help"]])
def test_output_that_cannot_be_written_is_one_line_and_an_exit_code_of_its_own(
    args: list[str],
) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "penstock.control.main", *args],
            stdout=full, stderr=subprocess.PIPE, text=True, check=False,
        )  # fmt: skip
    assert done.returncode == 3
    assert done.stderr.startswith("penstock: error: the output cannot be written (No space left")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("args", [["--version"], ["status", "--help"]])
def test_output_that_nobody_reads_any_more_has_the_same_exit_code_and_no_words(
    args: list[str],
) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with open(writing, "w") as broken:
        done = subprocess.run(
            [sys.executable, "-m", "penstock.control.main", *args],
            stdout=broken, stderr=subprocess.PIPE, text=True, check=False,
        )  # fmt: skip
    assert (done.returncode, done.stderr) == (3, "")
