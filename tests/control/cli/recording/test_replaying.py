"""`penstock replay`: what it says is what the evals' program says, of this machine's gateway."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import typer.main
from typer import Typer

from penstock.control.cli.app import app
from penstock.control.data_dir import announce
from penstock.evals.main import app as evals
from tests.evals.fake_gateway import Said, streamed
from tests.evals.recordings import CHAT, chat, endpoint, written

STREAM = (200, "text/event-stream", streamed(Said("Hello there")))


def run(*arguments: object, key: str = "") -> subprocess.CompletedProcess[str]:
    """The command, as a process: it becomes another program."""
    clean = {name: value for name, value in os.environ.items() if "PENSTOCK" not in name}
    return subprocess.run(
        [sys.executable, "-m", "penstock.control.main", "replay", *map(str, arguments)],
        env={**clean, "COLUMNS": "80", **({"PENSTOCK_API_KEY": key} if key else {})},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.processes
def test_the_gateway_of_the_data_directory_is_asked_with_the_options_given(tmp_path: Path) -> None:
    file = written(tmp_path / "-r.jsonl", *(chat(n, at=n * 3600.0) for n in range(3)))
    with endpoint({CHAT: STREAM}) as gateway:
        announce(tmp_path, {"gateway": gateway.url.removeprefix("http://")})
        own = ("--data-dir", tmp_path, "--speed", "max", "--limit", "2", "--model", "maxi")
        done = run(*own, "--strict", "--out", tmp_path / "o", "--", file, key="psk_1")
        told = run(file, "--target", gateway.url, "--speed", "max", "--api-key", "psk_2")
    assert (done.returncode, told.returncode) == (0, 0), done.stderr + told.stderr
    assert [body["model"] for _, body, _ in gateway.asked] == ["maxi"] * 2 + ["mini"] * 3
    keys = [headers["authorization"] for _, _, headers in gateway.asked]
    assert keys == ["Bearer psk_1"] * 2 + ["Bearer psk_2"] * 3
    assert (tmp_path / "o" / "result.json").exists()


@pytest.mark.processes
def test_what_is_wrong_is_said_in_a_line(tmp_path: Path) -> None:
    announce(tmp_path, {"gateway": "somewhere"})
    done = run("r.jsonl", "--data-dir", tmp_path)
    assert done.returncode == 1
    assert done.stderr.startswith("penstock replay: error: --target")
    done = run(tmp_path / "none.jsonl")
    assert done.returncode == 1
    assert "none.jsonl cannot be read" in done.stderr


def test_the_verb_has_the_options_of_the_evals_command_and_its_words() -> None:
    verb, command = options(app), options(evals)
    assert set(verb) - set(command) == {"data_dir"}
    assert set(command) <= set(verb)
    same = {"file", "api_key", "model", "limit", "out", "strict"}
    assert {name: verb[name] for name in same} == {name: command[name] for name in same}


def options(app: Typer) -> dict[str, str | None]:
    """The help of each parameter of `replay`."""
    command = typer.main.get_group(app).get_command(None, "replay")  # type: ignore[arg-type]
    assert command
    return {each.name: getattr(each, "help", None) for each in command.params}
