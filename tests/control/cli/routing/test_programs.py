"""`penstock program`: what ships, and what a program decides before simulated engines."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from penstock.control.cli.app import app
from penstock.control.shipped_programs import shipped_programs
from penstock.evals.comparison.recording import (
    Answered,
    Header,
    Recorded,
    header_line,
    request_line,
)


def run(*words: object) -> Result:
    return CliRunner(env={"COLUMNS": "200"}).invoke(app, ["program", *map(str, words)])


def tried(*words: object) -> dict[str, Any]:
    """What a test of 60 requests says."""
    done = run("test", *words, "--requests", 60, "--json")
    assert done.exit_code == 0, done.output
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def test_what_ships_is_listed_with_what_may_be_set() -> None:
    found = {each["name"]: each for each in json.loads(run("list", "--json").stdout)}
    assert found.keys() == shipped_programs().keys()
    assert found["balanced_prefill_decode"]["args"] == {"pd_balance_factor": 0.1}
    assert found["context_migration"]["uses"] == ["lookup", "migrate"]
    assert "pd_balance_factor=0.1" in run("list").stdout


def test_each_decision_is_shown_with_its_cost_and_that_of_power_of_two() -> None:
    shown = run("test", "balanced_prefill_decode", "--prefill", 1, "--requests", 30).stdout
    assert "Decisions, the first 20 of 30" in shown
    assert "tokenize prep_recv remote_send  2688" in shown
    assert "power_of_two" in shown


def test_prefill_and_decode_apart_answer_sooner_under_the_load_of_the_paper() -> None:
    told = tried("prefill_decode", "--prefill", 1)
    assert told["figures"]["total_mean"] < told["power_of_two"]["total_mean"]
    assert told["figures"]["moved"] == 60 * 2992
    assert not told["figures"]["failed"]


def test_a_decode_engine_that_holds_the_prompt_is_sent_less() -> None:
    whole = tried("cache_aware_prefill_decode", "--prefill", 1)
    shared = tried("cache_aware_prefill_decode", "--prefill", 1, "--sessions", 5)
    assert shared["figures"]["moved"] < 0.6 * whole["figures"]["moved"]


def test_contexts_move_when_engines_are_busy() -> None:
    told = tried("context_migration", "--sessions", 3, "--rate", 5, "--arg", "overload=0")
    assert told["figures"]["moved"] > 0
    assert any(each["calls"] == ["lookup", "migrate"] for each in told["requests"])


def test_the_same_words_give_the_same_figures() -> None:
    assert tried("prefill_decode") == tried("prefill_decode")


def test_a_recording_gives_lengths_times_and_sessions(tmp_path: Path) -> None:
    file = tmp_path / "r.jsonl"
    lines = [header_line(Header(datetime(2026, 1, 1, tzinfo=UTC)))]
    for number, prompt in enumerate((320, 640)):
        answered = Answered(prompt_tokens=prompt, completion_tokens=5)
        lines.append(
            request_line(
                Recorded(f"r{number}", 60.0 + number, "/v1/chat/completions", {}, "s", answered)
            )
        )
    file.write_bytes(b"".join(lines))
    done = run("test", "data_parallel", "--replay", file, "--json")
    assert [each["prompt"] for each in json.loads(done.stdout)["requests"]] == [320, 640]
    file.write_bytes(lines[0] + b'{"at": "x"}\n')
    wrong = run("test", "data_parallel", "--replay", file)
    assert wrong.exit_code == 1
    assert "line 2 is no request of a recording" in wrong.stderr


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("async def route(request, engines, stats): return 1\n", "nonsense: returned a int"),
        ("async def route(request, engines, stats): 1 / 0\n", "raised: ZeroDivisionError"),
        ("async def route(request, engines, stats): return None\n", "left to the gateway"),
        (
            "import asyncio\nasync def route(request, engines, stats):\n"
            "    await asyncio.Event().wait()\n",
            "slow: no decision in 60 s",
        ),
    ],
)
def test_a_request_that_the_program_fails_goes_by_power_of_two_and_why_is_shown(
    tmp_path: Path, text: str, said: str
) -> None:
    file = tmp_path / "mine.py"
    file.write_text(text)
    told = tried(file)
    assert told["figures"]["failed"] == 60
    assert said in told["requests"][0]["trouble"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("def route(: ...", "is no Python: line 1"),
        ("import no_such\nasync def route(request, engines, stats): ...\n", "cannot be run"),
    ],
)
def test_what_is_no_program_is_refused_in_a_line(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "mine.py"
    file.write_text(text)
    done = run("test", file)
    assert done.exit_code == 1
    assert done.stderr.startswith("penstock program test: error:")
    assert said in done.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("nobody",), "neither a file that can be read nor one of balanced_prefill_decode"),
        (("data_parallel", "--arg", "a=1"), "data_parallel has no such parameter"),
        (("data_parallel", "--prefill", 2), "--prefill is 2"),
        (("data_parallel", "--replay", "/no"), "--replay /no: "),
    ],
)
def test_what_cannot_be_tried_is_said(words: tuple[object, ...], said: str) -> None:
    done = run("test", *words)
    assert done.exit_code == 1
    assert said in done.stderr
