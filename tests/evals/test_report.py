from __future__ import annotations

import json
from typing import Any

from penstock.evals.bench_plan import GATEWAY, NGINX, Scenario, judge
from penstock.evals.load_bench import BenchOptions, ScenarioResult
from penstock.evals.machine import Facts
from penstock.evals.report import as_json, as_markdown
from penstock.evals.scenarios import named
from penstock.evals.scoring import combined, window_from
from tests.evals.windows import process, report

FACTS = Facts(2, "Some CPU", 24.0, "6.1", (0.25, 0.5, 0.75), "0123456789abcdef", changed=True)
OPTIONS = BenchOptions(("penstock", "serve"), "nginx")


def result(name: str = "paced-256") -> ScenarioResult:
    scenario = named(name)
    assert isinstance(scenario, Scenario)
    nginx = report(processes=[process("front", 8000), process("behind", 3000)])
    reports: dict[str, list[Any]] = {GATEWAY: [report()], NGINX: [nginx]}
    scores = {key: combined([window_from(r) for r in rs], 10) for key, rs in reports.items()}
    return ScenarioResult(scenario, 3, 700, scores, judge(scenario, scores), reports)


def test_the_table_shows_both_targets_their_ratio_and_the_goals() -> None:
    text = as_markdown([result()], FACTS, OPTIONS)
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    assert rows[1].startswith("| gateway | 4.00 | 2.00 | 40.0 |")
    assert rows[2].startswith("| nginx | 8.00 | 3.00 | 80.0 |")
    assert rows[3].startswith("| gateway / nginx | 0.50x | 0.67x | 0.50x |")
    assert "- PASS: gateway spends at most half of nginx's CPU per event (4.00, limit 4.00)" in text
    assert "2 cores (Some CPU)" in text
    assert "revision 0123456789ab with changes" in text


def test_every_row_has_as_many_cells_as_the_header() -> None:
    text = as_markdown([result(), result("short-streamed")], FACTS, OPTIONS)
    for section in text.split("###")[1:]:
        rows = [line for line in section.splitlines() if line.startswith("|")]
        assert len({row.count("|") for row in rows}) == 1


def test_columns_without_any_figure_are_left_out() -> None:
    assert "gap" not in as_markdown([result()], FACTS, OPTIONS)


def test_a_missed_goal_is_marked() -> None:
    text = as_markdown([result("paced-10000")], FACTS, OPTIONS)
    assert "- FAIL: the events that are due come (500, limit 9,500)" in text
    text = as_markdown([result("short-streamed")], FACTS, OPTIONS)
    assert "- PASS: a streamed answer costs no more CPU than nginx's (40.0, limit 80.0)" in text
    assert "(3 events, 700 bytes an answer)" in text


def test_the_json_holds_every_round_as_it_was_reported() -> None:
    data = json.loads(as_json([result()], FACTS, OPTIONS, "2025-01-01T00:00:00+00:00"))
    (scenario,) = data["scenarios"]
    assert scenario["targets"]["gateway"]["rounds"] == [report()]
    assert scenario["targets"]["gateway"]["median"]["front_us_per_event"] == 4
    assert scenario["gateway_to_nginx"]["front us/event"] == 0.5
    assert scenario["goals"][0]["passed"] is True
    assert data["machine"]["cores"] == 2
    assert data["began"] == "2025-01-01T00:00:00+00:00"
