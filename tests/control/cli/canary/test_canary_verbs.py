"""`penstock canary`, against a real admin API."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from typer.testing import CliRunner

from penstock.control.cli.app import app
from penstock.control.state.canary.canary import Counted, PassedStep
from penstock.control.state.canary.counts import ArmCounts, Counts, Reading
from penstock.control.state.cluster import ClusterView
from tests.control.cli.conftest import AskedHead

LORA = ("--max-adapters", "2")
VERBS = ("start", "status", "list", "pause", "resume", "promote", "abort", "delete")


@pytest.fixture
def head(asked_head: AskedHead) -> AskedHead:
    for name in ("chat", "small"):
        asked_head.run("deploy", name, "--engine", "simulated", "--model", "m")
    return asked_head


def change(head: AskedHead, step: Callable[[ClusterView], ClusterView]) -> None:
    asyncio.run(head.admin.cluster.observe(step, "test"))


def started(head: AskedHead, *more: str) -> dict[str, Any]:
    made = head.run("canary", "start", "next", "chat", "small", *more, "--json")
    assert made.exit_code == 0, made.stderr
    return dict(json.loads(made.stdout))


def test_a_canary_is_started_listed_moved_and_deleted(head: AskedHead) -> None:
    made = started(
        head,
        *("--step", "100:200:30", "--step", "1000", "--guard", "errors.ratio=2"),
        *("--guard", "warmup-requests=5", "--reason", "cheaper"),
    )
    assert made["steps"][0] == {"permille": 100, "min_sessions": 200, "min_seconds": 30}
    assert made["steps"][1] == {"permille": 1000, "min_sessions": 100, "min_seconds": 60}
    assert (made["guards"]["errors"], made["guards"]["warmup_requests"]) == (
        {"ratio": 2.0, "margin": 0.01},
        5,
    )
    assert made["reason"] == "cheaper"
    assert json.loads(head.run("canary", "list", "--json").stdout) == [made]
    assert "next  running  chat    small      1 of 2  0 %" in head.run("canary", "list").stdout
    paused = head.run("canary", "pause", "next")
    assert paused.stdout == "canary next is paused: small beside chat\n"
    assert head.run("canary", "resume", "next").stdout.startswith("canary next is running")
    refused = head.run("canary", "delete", "next", "--yes")
    assert "abort or promote it first" in refused.stderr
    aborted = head.run("canary", "abort", "next", "--reason", "odd answers")
    assert "is aborted: small beside chat" in aborted.stdout
    assert "odd answers" in aborted.stdout
    assert head.run("canary", "delete", "next", "--yes").stdout == "canary next is deleted\n"
    assert "no canary 'next'" in head.run("canary", "status", "next").stderr


def test_one_of_revisions_waits(head: AskedHead) -> None:
    made = head.run("canary", "start", "careful", "chat", "--revisions")
    assert made.stdout.startswith("canary careful waits: each new revision beside chat")
    assert "careful  waiting  chat    each new revision" in head.run("canary", "list").stdout


def test_a_dry_run_starts_nothing(head: AskedHead) -> None:
    made = head.run("canary", "start", "next", "chat", "small", "--dry-run")
    assert made.stdout == "canary next would start: small beside chat\n"
    assert head.run("canary", "list").stdout == "Canaries: none\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("next", "chat"), "say who the candidate is"),
        (("next", "chat", "small", "--revisions"), "one of the two"),
        (("next", "chat", "small", "--step", "ten"), "--step is 'ten'"),
        (("next", "chat", "small", "--step", "1:2:3:4"), "--step is '1:2:3:4'"),
        (("next", "chat", "small", "--step", "0"), "steps.0.permille"),
        (("next", "chat", "small", "--guard", "errors"), "such as errors.ratio=2"),
        (("next", "chat", "small", "--guard", "errors.ratio=0"), "guards.errors.ratio"),
        (("next", "chat", "small", "--guard", "tttf.margin=1"), "guards.tttf"),
        (("next", "chat", "nobody"), "no deployment 'nobody'"),
    ],
)
def test_what_cannot_be_started_says_why(
    head: AskedHead, words: tuple[str, ...], said: str
) -> None:
    reply = head.run("canary", "start", *words)
    assert reply.exit_code == 1
    assert said in reply.stderr


def counted(view: ClusterView) -> ClusterView:
    """At its second step, with what one gateway counted of it."""
    at = view.deployment("chat").created_at
    passed = PassedStep(1, 100, at, (("errors", "errors equal: 0 % of 100 sessions"),))
    canary = replace(view.canaries.canary("next"), weighted=True, step=2, passed=(passed,))
    stable = ArmCounts(sessions=900, answered_sessions=900, total=((128, 900),), requests=900)
    candidate = ArmCounts(
        sessions=100,
        bad_sessions=2,
        errors=(("timeout", 2),),
        answered_sessions=98,
        finishes=(("stop", 98),),
        total=((128, 98),),
        saved=2,
    )
    reading = Reading("gw-1", "i1", at, Counts(stable, candidate))
    canaries = view.canaries.having(canary).having_counted(Counted(canary.uid, 2, (reading,)))
    return replace(view, canaries=canaries)


def test_the_status_draws_both_arms_side_by_side_with_what_is_missing(head: AskedHead) -> None:
    started(head, "--step", "100", "--step", "500:5000", "--step", "1000")
    change(head, counted)
    lines = head.run("canary", "status", "next").stdout.splitlines()
    assert lines[0].startswith("  canary next: running, step 2 of 3, 50 % of chat goes to small")
    assert any(line.startswith("  missing: ") and "100 of 5000 sessions" in line for line in lines)
    cells = {line.split("  ")[0].strip(): line.split() for line in lines}
    assert cells["counted"][-2:] == ["chat", "small"]
    assert cells["sessions"][-2:] == ["900", "100"]
    assert cells["bad sessions"][-3:] == ["2", "(2", "%)"]
    assert any(line.split() == ["timeout", "0", "2"] for line in lines)
    assert any(line.startswith("total p50, p90  ") and "1.0" in line for line in lines)
    assert any(line.startswith("errors ") for line in lines)
    assert "  1: errors equal: 0 % of 100 sessions" in lines
    assert "ttft p50, p90" in cells


def test_who_follows_is_told_of_each_change_and_how_it_ended(head: AskedHead) -> None:
    started(head)
    head.run("canary", "abort", "next")
    told = head.run("canary", "status", "next", "--follow")
    assert told.exit_code == 1
    assert told.stderr == "canary next: aborted, at step 1 of 5\n"
    assert "canary next: aborted" in told.stdout
    as_json = head.run("canary", "status", "next", "-f", "--json")
    assert json.loads(as_json.stdout)["state"] == "aborted"


def test_status_and_describe_name_canaries_that_go_on(head: AskedHead) -> None:
    assert "Canaries" not in head.run("status").stdout
    started(head)
    assert "next  running  chat    small" in head.run("status").stdout
    assert json.loads(head.run("status", "--json").stdout)["canaries"][0]["name"] == "next"
    for name in ("chat", "small"):
        assert "next  running  chat    small" in head.run("describe", name).stdout
    head.run("canary", "abort", "next")
    assert "Canaries" not in head.run("status").stdout


@pytest.mark.parametrize(
    "words",
    [
        ("set", "chat", "canary=other:9"),
        ("deploy", "small", "--model", "other"),
        ("delete", "small", "--yes"),
    ],
)
def test_who_changes_an_arm_aborts_its_canary_first(head: AskedHead, words: tuple[str]) -> None:
    started(head)
    refused = head.run(*words)
    assert refused.exit_code == 1
    assert "`penstock canary abort next` first" in refused.stderr
    assert head.run(*words, "--abort-canary").exit_code == 0
    assert json.loads(head.run("canary", "list", "--json").stdout)[0]["state"] == "aborted"


@pytest.mark.parametrize(
    "words",
    [
        ("alias", "set", "mini:pirate", "pirate@2"),
        ("alias", "split", "mini:pirate", "pirate@1=1", "pirate@2=1"),
        ("alias", "delete", "mini:pirate", "--yes"),
        ("adapters", "retire", "pirate@2"),
        ("adapters", "remove", "pirate@2", "--yes"),
    ],
)
def test_who_moves_an_alias_or_its_versions_aborts_its_canary_first(
    asked_head: AskedHead, words: tuple[str]
) -> None:
    head, family = asked_head, ("--base", "mini")
    head.run("deploy", "mini", "--engine", "simulated", "--model", "penstock-mini", *LORA)
    for version in ("pirate@1", "pirate@2"):
        head.run("adapters", "add", version, "penstock-mini/pirate", *family)
    head.run("alias", "set", "mini:pirate", "pirate@1")
    assert head.run("canary", "start", "next", "mini:pirate", "pirate@2").exit_code == 0
    assert "`penstock canary abort next` first" in head.run(*words).stderr
    assert head.run(*words, "--abort-canary").exit_code == 0
    assert json.loads(head.run("canary", "list", "--json").stdout)[0]["state"] == "aborted"


def test_every_verb_has_help_with_an_example() -> None:
    for verb in VERBS:
        reply = CliRunner(env={"COLUMNS": "120", "NO_COLOR": "1"}).invoke(
            app, ["canary", verb, "-h"]
        )
        assert reply.exit_code == 0
        assert f"penstock canary {verb}" in reply.output
        assert "Example" in reply.output
