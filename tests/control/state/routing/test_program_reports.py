"""What is told of router programs: where they are not asked, what failed, what came back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest

from penstock.control.metrics.head import HeadFacts, HeadMetrics
from penstock.control.state.cluster import ClusterView, Gateway, GatewayReport, GatewayState
from penstock.control.state.fleet.liveness import Liveness, ObservedNode
from penstock.control.state.fleet.replica import ProgramStatus, Resources
from penstock.control.state.happened import happened, what_is_told
from penstock.control.state.problems import HeadHealth, ProblemKind, problems
from penstock.control.state.rollout.deployment import created
from penstock.control.state.routing.limits import SelectionPolicy, Sharing
from penstock.control.state.routing.program import Texts
from penstock.control.state.routing.program_counts import ProgramCounts, ProgramFailure
from penstock.control.state.routing.program_setting import Program
from tests.fakes.control_values import MINI, NOON, SECOND, UID, node, spec
from tests.fakes.promtool import samples

GOOD = ProgramCounts("d1", asked=9, decided=8)
SLOW = replace(GOOD, failures=(ProgramFailure("slow", 1),))
SLOWER = replace(GOOD, failures=(ProgramFailure("slow", 3),))
RAISED = replace(SLOWER, failures=(*SLOWER.failures, ProgramFailure("raised", 2, "KeyError")))
AWAY = replace(RAISED, unavailable="three failures in a row")
SHIPPED = {"mine": ""}


def view_of(said: ProgramCounts | None, *, policy: str = "program", **more: Any) -> ClusterView:
    """One deployment with a program, and what a gateway says of it."""
    sharing = Sharing(SelectionPolicy(policy), program=Program(name="mine"))
    view = ClusterView().with_deployment(created(replace(spec(), sharing=sharing), NOON, uid=UID))
    programs: Mapping[str, ProgramCounts] = {"mini": said} if said else {}
    report = GatewayReport(NOON, 1, programs=programs, **more)
    return view.with_gateway(Gateway("gw", GatewayState.READY, report=report, reporting=True))


@pytest.mark.parametrize(
    ("was", "now", "told"),
    [
        (GOOD, GOOD, []),
        (GOOD, SLOW, ["the program of mini failed at gateway gw, as it did not before: slow"]),
        (SLOW, SLOWER, []),  # once for each reason
        (
            SLOWER,
            RAISED,
            ["the program of mini failed at gateway gw, as it did not before: raised: KeyError"],
        ),
        (
            RAISED,
            AWAY,
            [
                "gateway gw asks the program of mini no more: three failures in a row (asked 9"
                " times, it decided 8 times, 5 failed)"
            ],
        ),
        (
            AWAY,
            RAISED,
            [
                "gateway gw asks the program of mini again (asked 9 times, it decided 8 times,"
                " 5 failed)"
            ],
        ),
        # Before it was ever asked: its process starts.
        (ProgramCounts("d1", "no process yet"), ProgramCounts("d1"), []),
        (replace(AWAY, digest="d0"), GOOD, []),  # another program
        (None, AWAY, []),  # a head that starts, or a gateway
        (GOOD, None, []),
    ],
)
def test_events_tell_what_changed(
    was: ProgramCounts | None, now: ProgramCounts | None, told: list[str]
) -> None:
    before, after = view_of(was), view_of(now)
    events = list(happened(before, replace(after, deployments=before.deployments), NOON))
    assert [each.text for each in events] == told
    assert all((each.kind, each.deployment) == ("deployment", "mini") for each in events)
    if told:
        assert what_is_told(before)[-1] != what_is_told(after)[-1], "else nobody looks"


def test_a_gateway_that_began_again_counts_anew() -> None:
    before, after = view_of(GOOD, instance="1"), view_of(AWAY, instance="2")
    assert not list(happened(before, replace(after, deployments=before.deployments), NOON))


def test_counts_that_grow_wake_nobody() -> None:
    assert what_is_told(view_of(SLOW))[-1] == what_is_told(view_of(SLOWER))[-1]


@pytest.mark.parametrize(
    ("view", "is_wrong"),
    [
        (view_of(AWAY), True),
        (view_of(GOOD), False),
        (view_of(None), False),
        (view_of(AWAY, policy="session"), False),
    ],
)
def test_a_program_that_is_not_asked_is_a_problem(view: ClusterView, *, is_wrong: bool) -> None:
    metric = samples(HeadMetrics(HeadFacts(lambda: view, lambda: 1, dict, lambda: 0)).page())
    name = 'penstock_head_deployment_program_not_asked{deployment="mini"}'
    asks = view.deployments[MINI].spec.sharing.policy is SelectionPolicy.PROGRAM
    assert metric.get(name) == (float(is_wrong) if asks else None)
    status = ProgramStatus(UID, "d1", running=False, last_error="it ended with exit code 1")
    live = Liveness(nodes={node().id: ObservedNode(NOON, Resources(), programs=(status,))})
    assert (
        told(view, live)
        == [
            "its program is not asked, its requests go by power_of_two there: gateway gw: three"
            " failures in a row; node n1: it ended with exit code 1"
        ]
        * is_wrong
    )


def told(
    view: ClusterView, live: Liveness, shipped: Texts = SHIPPED, at: datetime = NOON
) -> list[str]:
    """What is told of programs."""
    found = problems(view, live, HeadHealth(), at, shipped)
    return [it.text for it in found if it.kind is ProblemKind.PROGRAM]


def process(*, running: bool = False, said: str = "") -> Liveness:
    """What a node agent says of the program's process."""
    status = ProgramStatus(UID, "d1", running=running, last_error=said)
    return Liveness(nodes={node().id: ObservedNode(NOON, Resources(), programs=(status,))})


def test_a_program_that_was_set_just_now_is_said_to_start() -> None:
    view = view_of(replace(GOOD, unavailable="no process runs beside this gateway"))
    starts = [
        "its program is being started, its requests go by power_of_two there until then: gateway gw"
    ]
    later = NOON + 6 * SECOND
    assert told(view, Liveness()) == starts, "no agent has heard of it yet"
    assert told(view, process(), at=later) == starts
    assert "no process runs" in told(view, Liveness(), at=later)[0], "no agent is there"
    assert "no process runs" in told(view, process(running=True))[0], "it runs elsewhere"
    assert "no module" in told(view, process(said="no module"))[0]


def test_a_program_that_ships_no_more_is_a_problem() -> None:
    (text,) = told(view_of(None), Liveness(), {"other": ""})
    assert text.startswith("no program mine ships with this Penstock, as one did when it was set")
    assert "there are other" in text
    assert not told(view_of(None, policy="session"), Liveness(), {})
