"""The rules that are shipped: promtool's word on them, and a page for each alert."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.fakes.promtool import PROMTOOL
from tests.monitoring.shipped import ROOT, RULES, declared, names_in, recorded, rules_in

FILES = sorted(RULES.glob("*.yml"))
CASES = Path(__file__).parent / "rules"
PAGES = ROOT / "docs" / "operate" / "alerts"
PARTS = ("**What it means.**", "**How to look.**", "**What to do.**")
ALERTS = [rule for rule in rules_in(*FILES) if "alert" in rule]


def promtool(*words: str) -> str:
    """What it says, with its exit code where that is not 0."""
    command = [PROMTOOL, *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    return done.stdout + done.stderr + (f"exit code {done.returncode}" if done.returncode else "")


def test_promtool_takes_them() -> None:
    said = promtool("check", "rules", *map(str, FILES))
    assert said.count("SUCCESS") == len(FILES), said


@pytest.mark.parametrize("cases", sorted(CASES.iterdir()), ids=lambda path: path.stem)
def test_each_alert_fires_in_time_and_ends(cases: Path) -> None:
    said = promtool("test", "rules", str(cases))
    assert said.rstrip().endswith("SUCCESS"), said


def test_no_alert_is_without_a_case() -> None:
    said = "".join(path.read_text() for path in CASES.iterdir())
    assert [it["alert"] for it in ALERTS if f"alertname: {it['alert']}\n" not in said] == []


def test_each_alert_has_a_page_with_what_it_means_how_to_look_and_what_to_do() -> None:
    assert {page.stem for page in PAGES.iterdir()} == {alert["alert"] for alert in ALERTS}
    for page in PAGES.iterdir():
        text = page.read_text()
        assert text.startswith(f"# {page.stem}\n"), page
        assert [part for part in PARTS if text.count(f"\n{part}") != 1] == [], page


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: str(alert["alert"]))
def test_an_alert_says_how_bad_it_is_and_which_page_to_read(
    alert: dict[str, dict[str, str]],
) -> None:
    assert alert["labels"]["severity"] in ("critical", "warning", "info")
    assert alert["annotations"]["summary"]
    assert alert["annotations"]["runbook"] == f"docs/operate/alerts/{alert['alert']}.md"


def test_rules_ask_for_metrics_that_are_told() -> None:
    asked = {name for rule in rules_in(*FILES) for name in names_in(str(rule["expr"]))}
    assert asked - declared() - recorded(*FILES) == set()
