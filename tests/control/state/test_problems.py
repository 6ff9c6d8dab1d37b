"""What an operator has to know first, from any state."""

from __future__ import annotations

from dataclasses import replace

import pytest

from penstock.control.state.canary.canary import Canaries, Canary, CanaryState
from penstock.control.state.cluster import ClusterView, Gateway, GatewayState
from penstock.control.state.command import ADVICE
from penstock.control.state.fleet.liveness import Liveness, ObservedNode
from penstock.control.state.fleet.replica import (
    Device,
    Evidence,
    NodeState,
    Replica,
    ReplicaState,
    Resources,
)
from penstock.control.state.problems import (
    LONGEST_TEXT,
    HeadHealth,
    Problem,
    ProblemKind,
    problems,
    shortened,
)
from penstock.control.state.rollout.deployment import created
from penstock.control.state.rollout.status import status_of
from penstock.control.state.routing.limits import Limits
from penstock.control.state.routing.program import NO_TEXTS
from penstock.control.state.shadow.shadows import Compared, Shadow, Shadows
from penstock.control.state.shadow.spec import Candidate, Primary, ShadowSpec
from penstock.control.state.switch import Switch
from tests.fakes.canary_values import canary
from tests.fakes.control_values import MINI, NOON, SECOND, UID, node, replica, spec

GOOD = (
    ClusterView()
    .with_node(node())
    .with_deployment(created(spec(), NOON, uid=UID))
    .with_replica(replica("a"))
)
WELL = HeadHealth()


def found(view: ClusterView, head: HeadHealth = WELL, *, seconds: int = 1) -> tuple[Problem, ...]:
    live = Liveness(nodes={node().id: ObservedNode(NOON, Resources())})
    return problems(view, live, head, NOON + seconds * SECOND, NO_TEXTS)


def one(view: ClusterView, head: HeadHealth = WELL, *, seconds: int = 1) -> Problem:
    (problem,) = found(view, head, seconds=seconds)
    return problem


def test_where_all_is_well_there_is_nothing_to_tell() -> None:
    assert found(GOOD) == ()


@pytest.mark.parametrize(
    ("health", "kind"),
    [
        (HeadHealth(data_dir="it is read-only"), ProblemKind.DATA_DIR),
        (HeadHealth(store="it failed"), ProblemKind.STORE),
        (HeadHealth(routes_withheld="it is read-only"), ProblemKind.ROUTES_WITHHELD),
    ],
)
def test_what_fails_at_the_head_itself_is_told(health: HeadHealth, kind: ProblemKind) -> None:
    problem = one(GOOD, health)
    assert (problem.kind, problem.subject) == (kind, "head")


def test_a_node_that_is_not_heard_is_told_before_its_replicas_are_given_up() -> None:
    problem = one(GOOD, seconds=4)
    assert (problem.kind, problem.subject) == (ProblemKind.NODE_SILENT, "node n1")
    assert "not heard for 4 s; as it last said, it runs a" in problem.text
    assert "penstock nodes delete n1" in problem.text


def without_resume(why: str, *, failed: bool) -> Replica:
    status = replace(replica("a").status, no_resume=why, resume_test_failed=failed)
    return replace(replica("a"), status=status)


def test_a_self_test_that_failed_is_told_once_for_a_deployment() -> None:
    view = GOOD.with_replica(without_resume("seeded differs", failed=True))
    problem = one(view.with_replica(replica("b")))
    assert (problem.kind, problem.subject) == (ProblemKind.RESUME, "deployment mini")
    assert problem.text.startswith("1 of 2 replicas go on with no answer")
    assert "the self-test of a failed: seeded differs" in problem.text
    assert "penstock set mini resume=off" in problem.text


def test_an_engine_without_resume_or_a_deployment_that_wants_none_is_no_problem() -> None:
    assert found(GOOD.with_replica(without_resume("it pools", failed=False))) == ()
    failed = GOOD.with_replica(without_resume("seeded differs", failed=True))
    off = replace(spec(), limits=Limits(resume=Switch.OFF))
    assert found(failed.with_deployment(created(off, NOON, uid=UID))) == ()


def test_a_drained_node_is_told_and_so_is_how_to_undo_it() -> None:
    problem = one(GOOD.with_node(replace(node(), draining=True)))
    assert problem.kind is ProblemKind.NODE_DRAINED
    assert "1 are still on it; `penstock drain n1 --undo`" in problem.text


def test_a_node_that_has_lost_an_accelerator_is_told_with_which() -> None:
    devices = (Device("GPU-0", "H200", lost=True), Device("GPU-1", "H200"))
    facts = replace(node().facts, resources=Resources(devices=devices))
    problem = one(GOOD.with_node(replace(node(), facts=facts)))
    assert (problem.kind, problem.subject) == (ProblemKind.ACCELERATOR_LOST, "node n1")
    assert problem.text.endswith("H200 GPU-0")


def test_what_waits_for_a_drained_node_says_so() -> None:
    view = GOOD.with_node(replace(node(), draining=True)).without_replica(replica("a").id)
    assert "n1 drained" in status_of(view, view.deployments[MINI]).message


def test_a_gateway_that_does_not_work_is_told_with_its_words() -> None:
    gateway = Gateway("gw-1", GatewayState.BACKOFF, last_error="no port")
    problem = one(GOOD.with_gateway(gateway))
    assert (problem.subject, problem.text) == ("gateway gw-1", "is backoff: no port")


def test_a_gateway_that_lives_and_is_not_heard_by_the_head_is_told() -> None:
    gateway = Gateway("gw-1", GatewayState.READY, last_error="reports nothing to this head")
    problem = one(GOOD.with_gateway(gateway))
    assert (problem.subject, problem.text) == ("gateway gw-1", "reports nothing to this head")


def test_a_deployment_that_does_not_serve_is_told_in_one_line() -> None:
    broken = replica("a", ReplicaState.FAILED)
    said = replace(broken.status, last_error="no such\n  parser\n" + "x" * 500)
    problem = one(GOOD.with_replica(replace(broken, status=said)))
    assert problem.kind is ProblemKind.DEPLOYMENT_FAILED
    assert "a failed: no such parser xxx" in problem.text
    assert "\n" not in problem.text
    assert len(shortened(said.last_error)) == LONGEST_TEXT


def test_a_deployment_whose_replica_ends_and_starts_again_and_again_is_told() -> None:
    begins = replica("a", ReplicaState.STARTING)
    assert found(GOOD.with_replica(begins)) == ()
    said = replace(begins.status, last_error="did not become ready within 60 s")
    problem = one(GOOD.with_replica(replace(begins, crashes=2, status=said)))
    assert problem.kind is ProblemKind.DEPLOYMENT_FAILED
    assert "starts again, it has ended 2 times by now: did not become ready" in problem.text


def test_an_update_that_fails_beside_what_serves_is_told() -> None:
    view = GOOD.with_replica(replica("old", digest="old")).with_replica(
        replica("a", ReplicaState.FAILED)
    )
    assert one(view).kind is ProblemKind.UPDATE_FAILED


def test_a_head_that_holds_still_shows_no_replica_ready_that_gives_no_sign() -> None:
    view = replace(GOOD, held=f"node n1 knows more: {ADVICE}")
    assert status_of(view, view.deployments[MINI]).ready == 0
    alive = view.with_replica(replica("a").judged(Evidence.ANSWERS, NOON))
    assert status_of(alive, view.deployments[MINI]).ready == 1


def test_a_take_over_that_is_under_way_is_told_instead_of_how_to_begin_it() -> None:
    view = replace(GOOD, held=f"node n1 knows more: {ADVICE}")
    assert "--take-over" in one(view).text
    problem = one(view, HeadHealth(takes_over=True))
    assert problem.kind is ProblemKind.TAKING_OVER
    assert "--take-over" not in problem.text + status_of(view, view.deployments[MINI]).message


def test_a_node_that_stopped_for_good_with_nothing_on_it_is_a_lost_one() -> None:
    view = GOOD.without_replica(replica("a").id).with_node(node(state=NodeState.LOST))
    assert one(view).kind is ProblemKind.NODE_SILENT


def test_a_comparer_that_does_not_run_is_told_with_its_words() -> None:
    compared = Compared(trouble="has ended, and is started again: exit code -9")
    problem = one(replace(GOOD, shadows=Shadows({}, compared)))
    assert (problem.kind, problem.subject) == (ProblemKind.COMPARER, "comparer")
    assert problem.text.startswith("has ended, and is started again: exit code -9; until it runs")


def test_a_shadow_whose_deployment_is_gone_is_told_unless_somebody_stopped_it() -> None:
    asked = ShadowSpec("s", Primary(MINI), Candidate("gone"), 100)
    shadow = Shadow(asked, UID, 7, NOON)
    problem = one(replace(GOOD, shadows=Shadows({"s": shadow})))
    assert (problem.kind, problem.subject) == (ProblemKind.SHADOW, "shadow s")
    assert "repeats nothing: candidate is 'gone': no deployment 'gone'" in problem.text
    assert "`penstock shadow delete s`" in problem.text
    for stopped in (replace(shadow, paused=True), replace(shadow, ended="it is past")):
        assert found(replace(GOOD, shadows=Shadows({"s": stopped}))) == ()


def test_a_canary_that_is_held_for_long_or_was_rolled_back_is_a_problem() -> None:
    held = canary(state=CanaryState.HELD, weighted=True, why="no gateway reports")
    assert found(having(replace(held, created_at=NOON - 3658 * SECOND))) == ()
    problem = one(having(replace(held, created_at=NOON - 3659 * SECOND)))
    assert (problem.kind, problem.subject) == (ProblemKind.CANARY, "canary try")
    assert problem.text == "has been held at 10 % for 1 h, next beside mini: no gateway reports"
    back = replace(held, state=CanaryState.ROLLED_BACK, why="errors worse", ended_at=NOON)
    assert one(having(back)).text == (
        "is rolled back, next beside mini: errors worse; `penstock canary status try`"
    )
    assert found(having(replace(back, ended_at=NOON - 86_400 * SECOND))) == ()


def having(known: Canary) -> ClusterView:
    return replace(GOOD, canaries=Canaries({known.spec.name: known}))
