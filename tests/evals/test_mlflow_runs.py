"""What a comparison says as a run of MLflow. That MLflow takes it: `tests/e2e/test_mlflow.py`."""

from __future__ import annotations

import json

from penstock.evals.comparison.report import as_dict, report
from penstock.evals.comparison.rules import rules
from penstock.evals.comparison.tally import Tally
from penstock.evals.mlflow_runs import Told, metrics, params, tags
from tests.evals.comparison.examples import pair, said


def told(pairs: int) -> Told:
    """Of a candidate that says nothing."""
    tally = Tally(rules({"empty": 0.1}))
    for _ in range(pairs):
        tally.add(pair(said("")))
    settings = {"share_permille": 100, "until": {"pairs": 9}, "tenants": [], "margins": {}}
    return Told("smaller", as_dict(report(tally, "chat", "small")), "", "", settings)


def test_figures_are_of_the_checks_that_could_be_made() -> None:
    found = dict(metrics(told(60).report))
    assert (found["pairs"], found["sessions"], found["self_pairs"]) == (60, 60, 0)
    assert (found["empty.difference"], found["empty.pairs"]) == (1, 60)
    assert found["ttft.pairs"] == 0
    assert "ttft.difference" not in found


def test_settings_are_what_was_compared_and_what_it_was_held_to() -> None:
    found = dict(params(told(1)))
    assert (found["primary"], found["candidate"], found["alpha"]) == ("chat", "small", "0.05")
    assert (found["margin.empty"], found["margin.error"]) == ("0.1", "0.01")
    assert found["gates"].startswith("error,finish_length,")
    assert json.loads(found["until"]) == {"pairs": 9}
    assert found["share_permille"] == "100"
    assert not {"tenants", "margins"} & found.keys()


def test_verdicts_are_tags() -> None:
    found = dict(tags(told(60).report))
    assert (found["verdict"], found["verdict.empty"]) == ("worse", "worse")
    assert found["verdict.ttft"] == "not made"
