"""`penstock rollout evidence` and `policy`, against a real admin API."""

from __future__ import annotations

import json
from pathlib import Path

from tests.control.cli.conftest import AskedHead

DEPLOY = ("deploy", "mini", "--engine", "simulated", "--model", "m")


def test_findings_are_kept_and_shown(asked_head: AskedHead, tmp_path: Path) -> None:
    asked_head.run(*DEPLOY)
    report = tmp_path / "report.json"
    report.write_text(json.dumps({"wins": 7}))
    put = ("--put", "regression", "--failed", "--report", str(report))
    kept = asked_head.run("rollout", "evidence", "mini", *put)
    assert kept.stdout == "revision 1 of mini failed regression\n", kept.stderr
    shown = asked_head.run("rollout", "evidence", "mini", "1")
    assert shown.stdout.splitlines()[-1].split()[1:3] == ["regression", "failed"]
    (listed,) = json.loads(asked_head.run("rollout", "evidence", "mini", "--json").stdout)
    assert (listed["kind"], listed["has_report"]) == ("regression", True)


def test_what_says_too_little_is_refused(asked_head: AskedHead) -> None:
    asked_head.run(*DEPLOY)
    assert (
        "--passed or --failed" in asked_head.run("rollout", "evidence", "mini", "--put", "x").stderr
    )
    assert "--put KIND" in asked_head.run("rollout", "evidence", "mini", "--passed").stderr
    gone = asked_head.run(
        "rollout", "evidence", "mini", "--put", "x", "--passed", "--report", "/nowhere.json"
    )
    assert "/nowhere.json" in gone.stderr


def test_the_policy_is_shown_and_changed(asked_head: AskedHead) -> None:
    assert asked_head.run("rollout", "policy").stdout == "evidence before: nothing\n"
    said = ("evidence_for=canary,live", "kind=shadow", "not_older_than_hours=168")
    told = asked_head.run("rollout", "policy", *said)
    assert told.stdout == "evidence before: canary, live\nof kind: shadow, at most 168 h old\n"
    assert json.loads(asked_head.run("rollout", "policy", "--json").stdout)["kind"] == "shadow"
    assert "evidence_for" in asked_head.run("rollout", "policy", "evidence_for=dead").stderr
