"""Reports: the verdict, its reasons, and what is missing."""

from __future__ import annotations

import json

import pytest

from penstock.evals.comparison.bad_check import BadCheck
from penstock.evals.comparison.betting import Verdict
from penstock.evals.comparison.pair import Answer
from penstock.evals.comparison.report import Report, as_dict, as_markdown, report
from penstock.evals.comparison.rules import rules
from penstock.evals.comparison.tally import Tally
from tests.evals.comparison.examples import failed, pair, said

GOOD = said(ttft=0.1, tpot=0.01, total=1.0, model="mini@1")
SLOW = said(ttft=0.2, tpot=0.02, total=2.0, model="mini@2")


def compared(candidate: Answer, count: int, again: Answer | None = GOOD) -> Report:
    """So many like pairs."""
    tally = Tally(rules())
    for _ in range(count):
        tally.add(pair(candidate, GOOD, again))
    return report(tally, "mini@1", "mini|@2")


def test_nothing_compared_is_undecided() -> None:
    found = compared(GOOD, 0)
    assert found.verdict is Verdict.UNDECIDED
    assert found.reasons[0] == "No pair could be compared."
    assert "not made: needs a judge" in as_markdown(found)


def test_an_equal_candidate_is_undecided_and_then_equal() -> None:
    early = compared(GOOD, 400)
    assert early.verdict is Verdict.UNDECIDED
    assert early.missing is not None
    assert 100 < early.missing < 3000
    assert any("more pairs" in each for each in early.reasons)
    late = compared(GOOD, 400 + 2 * early.missing)
    assert (late.verdict, late.missing) == (Verdict.EQUAL, None)


def test_a_slow_candidate_is_worse_by_its_times_and_equal_in_content() -> None:
    found = compared(SLOW, 300)
    assert found.verdict is Verdict.WORSE
    assert [each.split(" ")[0] for each in found.reasons[:3]] == ["ttft", "tpot", "total"]
    assert "x2.00 over 300 pairs" in found.reasons[0]
    verdicts = {each.check.name: each.verdict for each in found.findings}
    assert verdicts["finish_length"] is not Verdict.WORSE


def test_a_dead_candidate_is_worse_by_errors() -> None:
    found = compared(failed(), 60)
    assert found.verdict is Verdict.WORSE
    assert found.reasons[0].startswith("error (no whole answer): +100.0% over 60 pairs")


def test_without_a_self_arm_times_are_not_checked_and_that_is_said() -> None:
    found = compared(SLOW, 3000, again=None)
    assert found.verdict is Verdict.EQUAL
    assert "Not checked: ttft, which needs the primary asked again (a self arm)." in found.reasons


def test_json_and_markdown_say_the_same() -> None:
    found = compared(SLOW, 300)
    told, text = json.loads(json.dumps(as_dict(found))), as_markdown(found)
    assert told["verdict"] == "worse"
    assert told["made_by"] == {"primary mini@1": 300, "candidate mini@2": 300}
    assert text.startswith("## Worse: mini\\|@2 beside mini@1\n")
    for each in told["checks"]:
        assert f"| {each['name']} | {'gate' if each['gate'] else 'shown'} |" in text


def test_gates_share_the_error_rate_and_what_is_shown_has_its_own() -> None:
    held = rules()
    gate, shown = held.gates[0], held.checks[-1]
    assert held.log_limit(gate) > held.log_limit(shown)
    assert len(rules(judge=True).gates) == len(held.gates) + 1
    assert rules(gates=["error"]).log_limit(gate) == pytest.approx(held.log_limit(shown))


def test_rules_that_cannot_be_are_refused() -> None:
    with pytest.raises(BadCheck, match="there is no check 'tone'"):
        rules(gates=["tone"])
    with pytest.raises(BadCheck, match="margin of error is 2"):
        rules(margins={"error": 2})
    with pytest.raises(BadCheck, match="alpha is 0"):
        rules(alpha=0)
    with pytest.raises(BadCheck, match="no regular expression"):
        rules(guarded={"x": "("})
