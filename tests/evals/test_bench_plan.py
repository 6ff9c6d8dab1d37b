from __future__ import annotations

import pytest

from penstock.evals.bench_plan import ALONE, GATEWAY, NGINX, Goal, Scenario, judge
from penstock.evals.scenarios import SCENARIOS, named
from penstock.evals.scoring import Score, combined, window_from
from tests.evals.windows import process, report


def scored(front_us_per_event: float, failures: int = 0) -> Score:
    front = process("front", front_us_per_event * 1000)
    behind = process("behind", 1000)
    window = report(processes=[front, behind], failed_requests=failures)
    return combined([window_from(window)], connections=1)


def paced() -> Scenario:
    found = named("paced-256")
    assert found is not None
    return found


def test_the_goals_of_the_first_day_are_there() -> None:
    paced = {"paced-256", "paced-1024", "paced-10000"}
    assert paced | {"short-streamed", "short-unary", "large-prompts"} <= {
        scenario.name for scenario in SCENARIOS if scenario.goals
    }
    assert [s.connections for s in SCENARIOS if s.endless] == [256, 1024, 10_000]


def test_names_are_unique_and_unknown_ones_are_none() -> None:
    assert len({scenario.name for scenario in SCENARIOS}) == len(SCENARIOS)
    assert named("nothing") is None


@pytest.mark.parametrize(("gateway", "passed"), [(1.9, True), (2.1, False)])
def test_the_gateway_is_judged_by_nginx_in_the_same_run(gateway: float, passed: bool) -> None:
    verdicts = judge(paced(), {GATEWAY: scored(gateway), NGINX: scored(4)})
    assert [verdict.passed for verdict in verdicts] == [passed, True]
    assert verdicts[0].limit == 2


def test_a_failure_of_any_target_fails_the_scenario() -> None:
    verdicts = judge(paced(), {GATEWAY: scored(1), NGINX: scored(4, failures=2)})
    assert [(v.text, v.value, v.passed) for v in verdicts[1:]] == [("no answer fails", 2, False)]


def test_a_goal_without_its_figure_is_missed() -> None:
    unknown = combined([window_from(report(processes=[]))], connections=1)
    assert not judge(paced(), {GATEWAY: unknown, NGINX: scored(4)})[0].passed
    assert not judge(paced(), {GATEWAY: scored(4), NGINX: unknown})[0].passed


def test_a_goal_may_be_a_lower_bound() -> None:
    goal = Goal("fast", "events_per_s", at_least=500)
    assert goal.judge({GATEWAY: scored(1)}).passed
    assert not Goal("faster", "events_per_s", at_least=501).judge({GATEWAY: scored(1)}).passed


def test_small_requests_beside_large_ones_are_judged_by_those_alone() -> None:
    found = named("large-prompts")
    assert found is not None
    assert found.beside is not None
    assert "per_request=1" in found.engine_args
    body = found.beside.body("m")
    assert len(body["messages"][0]["content"]) == 220_000  # type: ignore[index]
    verdict = judge(found, {GATEWAY: scored(1), ALONE: scored(1)})[0]
    assert (verdict.value, verdict.limit, verdict.passed) == (2, 4, True)


def test_endless_streams_step_at_the_engines_pace() -> None:
    assert paced().step_us == 20_000
    assert "tokens_per_second=50" in paced().engine_args
    assert paced().body("m")["max_tokens"] == 100_000
    assert paced().body("m", 64)["max_tokens"] == 64
    assert paced().recorded_tokens == 64


def test_a_slow_endless_answer_is_recorded_for_seconds_only() -> None:
    slow = named("paced-10000")
    assert slow is not None
    assert slow.recorded_tokens == 5
