"""`penstock shadow`, against a real admin API."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from penstock.control.cli.app import app
from penstock.control.state.shadow.comparing import Account
from tests.control.cli.conftest import AskedHead

VERBS = ("create", "list", "show", "report", "export", "pause", "resume", "delete")
REPORT = {
    "verdict": "worse",
    "primary": "chat",
    "candidate": "small",
    "reasons": ["error (no whole answer): +100.0% over 160 pairs, margin +1.0%: worse."],
    "pairs": 1600,
    "sessions": 160,
    "plan": [
        {"name": name, "margin": margin, "noise": noise, "equal": equal, "worse": equal // 2}
        | {"equal_days": equal / 500, "worse_days": equal / 1000}
        for name, margin, noise, equal in (
            ("error", 0.01, "0.5% differ", 550),
            ("error", 0.01, "30.0% differ", 10_000_000),
            ("json", 0.02, "0.5% differ", 400),
        )
    ],
    "outcomes": {"preempted": 12, "paired": 1600},
    "checks": [{"name": "error", "verdict": "worse", "pairs": 160}],
    "records": {"pairs": 1, "worst": [{"gate": "error", "asked": "heliotrope?"}]},
}


@pytest.fixture
def head(asked_head: AskedHead) -> AskedHead:
    for name in ("chat", "small"):
        asked_head.run("deploy", name, "--engine", "simulated", "--model", "m")
    return asked_head


def test_a_shadow_is_made_shown_listed_and_deleted(head: AskedHead) -> None:
    made = head.run(
        *("shadow", "create", "smaller", "chat", "small", "share-permille=200", "until.pairs=3000"),
        *("until.at=2030-01-02T03:04:05Z", "margin.error=0.02", "checks=error,json", "--json"),
        "guardrail.code-name=(?i)x=y",
    )
    assert made.exit_code == 0, made.stderr
    told = json.loads(made.stdout)
    assert (told["share_permille"], told["margins"]) == (200, {"error": 0.02})
    assert told["until"] == {"pairs": 3000, "at": "2030-01-02T03:04:05Z"}
    assert told["guardrails"] == {"code-name": "(?i)x=y"}
    del told["pairs_a_day"]
    shown = head.run("shadow", "show", "smaller").stdout
    assert "checks: error,json\n" in shown
    assert json.loads(head.run("shadow", "list", "--json").stdout) == [told]
    assert "20 %" in head.run("shadow", "list").stdout
    assert head.run("shadow", "pause", "smaller").stdout.startswith("shadow smaller is paused")
    assert head.run("shadow", "resume", "smaller").stdout.startswith("shadow smaller goes on")
    deleted = head.run("shadow", "delete", "smaller", "--yes")
    assert deleted.stdout == "shadow smaller is deleted\n"
    assert "no shadow 'smaller'" in head.run("shadow", "show", "smaller").stderr


def test_an_aa_run_is_one_line(head: AskedHead) -> None:
    made = head.run("shadow", "create", "trust", "chat")
    assert made.stdout.startswith("shadow trust is made: chat beside chat\n")
    assert "penstock shadow report trust" in made.stdout
    made = head.run("shadow", "create", "more", "chat", "share_permille=500", "--json")
    told = json.loads(made.stdout)
    assert (told["candidate"], told["share_permille"]) == ("chat", 500)


def test_what_margins_can_show_is_said_with_the_shadow(head: AskedHead) -> None:
    head.admin.comparisons.told = Account(json.dumps(REPORT), "", "")
    lines = head.run("shadow", "create", "smaller", "chat", "small").stdout.splitlines()
    assert lines[1].startswith("its primary had no traffic today or yesterday")
    assert lines[2:4] == [
        "  error (margin 0.01): equal after 550 to never (1.1 to 20,000 days);"
        " worse by twice that after 275 to 5,000,000 (0.6 to 10,000 days)",
        "  json (margin 0.02): equal after 400 (0.8 days);"
        " worse by twice that after 200 (0.4 days)",
    ]


@pytest.mark.processes
def test_a_dry_run_says_what_its_margins_can_show_and_changes_nothing(head: AskedHead) -> None:
    words = ("checks=error", "margin.error=0.02", "--dry-run")
    lines = head.run("shadow", "create", "s", "chat", *words).stdout.splitlines()
    assert lines[0] == "shadow s would be made: chat beside chat"
    assert lines[1].startswith("its primary had no traffic today or yesterday")
    assert lines[2].startswith("  error (margin 0.02): equal after ")
    assert len(lines) == 4
    assert json.loads(head.run("shadow", "list", "--json").stdout) == []


def test_a_report_is_words_markdown_or_json(head: AskedHead) -> None:
    head.run("shadow", "create", "smaller", "chat", "small")
    waits = head.run("shadow", "report", "smaller")
    assert waits.exit_code == 1
    assert "the comparer starts" in waits.stderr
    head.admin.comparisons.told = Account(json.dumps(REPORT), "## Worse", "<h1>")
    lines = head.run("shadow", "report", "smaller").stdout.splitlines()
    assert lines[0] == "worse: small beside chat"
    assert lines[1:3] == ["  waiting: the comparer starts", f"  {REPORT['reasons'][0]}"]  # type: ignore[index]
    assert lines[3] == "1,600 pairs, 160 count"
    assert lines[4:] == ["  paired: 1,600", "  preempted: 12"]
    assert head.run("shadow", "report", "smaller", "--markdown").stdout == "## Worse\n"
    assert head.run("shadow", "report", "smaller", "--html").stdout == "<h1>\n"
    assert json.loads(head.run("shadow", "report", "smaller", "--json").stdout) == REPORT


def test_what_was_counted_is_exported_as_json_lines(head: AskedHead) -> None:
    head.run("shadow", "create", "smaller", "chat", "small")
    head.admin.comparisons.told = Account(json.dumps(REPORT), "", "")
    lines = head.run("shadow", "export", "smaller").stdout.splitlines()
    first, *others = map(json.loads, lines)
    assert (first["kind"], first["name"], first["verdict"]) == ("shadow", "smaller", "worse")
    assert (first["share_permille"], first["sessions"]) == (100, 160)
    assert "heliotrope" not in str(lines)
    assert others == [
        {"kind": "check", "shadow": "smaller", "name": "error", "verdict": "worse", "pairs": 160},
        {"kind": "outcome", "shadow": "smaller", "outcome": "paired", "count": 1600},
        {"kind": "outcome", "shadow": "smaller", "outcome": "preempted", "count": 12},
    ]


@pytest.mark.processes
def test_an_export_to_mlflow_names_the_extra_where_that_is_not_installed(head: AskedHead) -> None:
    head.run("shadow", "create", "smaller", "chat", "small")
    head.admin.comparisons.told = Account(json.dumps(REPORT), "", "")
    reply = head.run("shadow", "export", "smaller", "--mlflow", "sqlite:///runs.db")
    assert reply.exit_code == 1
    (line,) = reply.stderr.splitlines()
    assert "error: MLflow is not installed: pip install 'penstock[mlflow]'" in line


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("create", "s", "nobody"), "primary is 'nobody'"),
        (("create", "s", "chat", "small", "oops"), "setting 'oops': it must be key=value"),
        (
            ("create", "s", "chat", "oops=1"),
            "oops: there is no such key; there are share_permille, sample, ",
        ),
        (("create", "s", "chat", "share_permille=many"), "share_permille: "),
        (("create", "s", "chat", "margin.taste=0.1"), "margins has 'taste'"),
        (("create", "s", "chat", "until=1"), "margin.CHECK, guardrail.NAME"),
        (("create", "s", "chat", "until.pears=1"), "until.pears"),
        (("create", "s", "chat", "guardrail.code-name=("), "guardrails.code-name is '('"),
        (("report", "nobody"), "no shadow 'nobody'"),
        (("delete", "nobody"), "no shadow 'nobody'"),
    ],
)
def test_what_goes_wrong_is_one_line(
    head: AskedHead, arguments: tuple[str, ...], words: str
) -> None:
    reply = head.run("shadow", *arguments)
    assert reply.exit_code == 1
    (line,) = reply.stderr.splitlines()
    assert ": error: " in line
    assert words in line


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_help_with_an_example(verb: str) -> None:
    runner = CliRunner(env={"COLUMNS": "120", "NO_COLOR": "1", "TERM": "dumb"})
    reply = runner.invoke(app, ["shadow", verb, "-h"])
    assert reply.exit_code == 0
    assert f"penstock shadow {verb}" in reply.output
    assert "Example" in reply.output
