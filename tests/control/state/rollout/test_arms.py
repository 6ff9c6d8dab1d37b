"""The plan while a canary judges a revision: what runs beside what, and who leaves when."""

from __future__ import annotations

from dataclasses import replace
from itertools import count

import pytest

from penstock.control.state.canary.canary import Canary, CanaryState, ended
from penstock.control.state.canary.replicas import Judged, judged_revision, missing
from penstock.control.state.canary.revisions import begun
from penstock.control.state.cluster import ClusterView
from penstock.control.state.fleet.replica import (
    Device,
    Evidence,
    Node,
    NodeIntent,
    Replica,
    ReplicaState,
    Resources,
)
from penstock.control.state.fleet.serving import serving
from penstock.control.state.rollout.actions import Confirm, Drain, GiveUp, LetOn, Place, Start
from penstock.control.state.rollout.availability import Availability, prospect_of
from penstock.control.state.rollout.deployment import Deployment, changed, paused
from penstock.control.state.rollout.failing import CRASH_LOOP
from penstock.control.state.rollout.placing import applied
from penstock.control.state.rollout.reconcile import decisions, plan
from penstock.control.state.rollout.revision import RevisionState
from penstock.control.state.rollout.roles import with_roles
from penstock.control.state.rollout.status import DeploymentPhase, status_of
from penstock.control.state.rollout.template import Template
from penstock.control.state.rollout.update import RolloutSettings, Update
from penstock.control.state.routing.program_setting import Role, Roles
from penstock.control.state.routing.snapshot import routes_of
from tests.fakes.control_values import (
    DEADLINES,
    MINI,
    NOON,
    SECOND,
    deployment,
    in_service,
    node,
    replica,
    spec,
)

PROVEN = NOON + 60 * SECOND
CANARY = "mini-revisions"


def serving_deployment(replicas: int = 3, engine: str = "simulated") -> Deployment:
    rollout = RolloutSettings(Update(min_ready_ms=5000, canary=CANARY))
    template = Template(engine=engine, model="a")
    wanted = replace(spec(replicas=replicas), template=template, rollout=rollout)
    return in_service(deployment(wanted))


def old_ones(known: Deployment) -> list[Replica]:
    return [
        replace(replica(f"a{n}", digest=known.template_digest), evidence=Evidence.ANSWERS)
        for n in range(known.spec.replicas)
    ]


def judging(
    *, replicas: int = 3, nodes: tuple[Node, ...] = (node(), node("n2")), engine: str = "simulated"
) -> ClusterView:
    """A deployment of model a, all of it ready, whose next revision is of model b."""
    known = serving_deployment(replicas, engine)
    view = ClusterView()
    for each in nodes:
        view = view.with_node(each)
    for one in old_ones(known):
        view = view.with_replica(one)
    template = Template(engine=engine, model="b")
    new = changed(known, replace(known.spec, template=template), NOON)
    return begun(view.with_deployment(new), known, NOON)


def at_step(view: ClusterView, step: int) -> ClusterView:
    canary = replace(view.canaries.canary(CANARY), step=step)
    return replace(view, canaries=view.canaries.having(canary))


def candidate(
    view: ClusterView, name: str = "b1", state: ReplicaState = ReplicaState.READY
) -> Replica:
    known = view.deployments[MINI]
    one = replica(name, state, digest=known.template_digest)
    return replace(one, generation=known.generation, evidence=Evidence.ANSWERS)


def with_candidates(view: ClusterView, many: int) -> ClusterView:
    for number in range(many):
        view = view.with_replica(candidate(view, f"b{number}"))
    return view


def lived_on(view: ClusterView) -> ClusterView:
    """After all that a plan makes, which gets ready at once, until it makes nothing more."""
    names = count(1)
    for _ in range(20):
        made = decisions(view, PROVEN, DEADLINES)
        view = applied(view, made, lambda: f"new{next(names)}", NOON)
        for each in list(view.replicas.values()):
            if each.state is ReplicaState.PENDING:
                status = replace(each.status, state=ReplicaState.READY, address=f"{each.id}:9000")
                ready = replace(each, state=ReplicaState.READY, status=status)
                view = view.with_replica(replace(ready, evidence=Evidence.ANSWERS))
            elif each.state is ReplicaState.DRAINING:
                view = view.without_replica(each.id)
        if not made:
            return view
    raise AssertionError("the plan comes to no end")


DIGEST_A = serving_deployment().template_digest


def models(view: ClusterView) -> list[str]:
    return sorted("a" if r.template_digest == DIGEST_A else "b" for r in view.replicas.values())


@pytest.mark.parametrize(
    ("replicas", "step", "wanted"),
    [(1, 1, 1), (3, 1, 1), (3, 4, 2), (3, 5, 3), (40, 2, 2), (41, 2, 3), (0, 5, 0)],
)
def test_as_many_of_it_are_wanted_as_the_share_of_its_step_is_of_all(
    replicas: int, step: int, wanted: int
) -> None:
    view = at_step(judging(replicas=replicas), step)
    known = view.deployments[MINI]
    assert judged_revision(view, known) == Judged(known.template_digest, wanted)


def test_the_first_step_puts_one_beside_all_the_old_ones_from_the_new_template() -> None:
    view = judging()
    (place,) = decisions(view, PROVEN, DEADLINES)
    assert isinstance(place, Place)
    assert place.digest == view.deployments[MINI].template_digest
    after = applied(view, [place], lambda: "b", NOON)
    (start,) = plan(after, NOON, DEADLINES)
    assert isinstance(start, Start)
    assert after.replicas[start.replica_id].template_digest == place.digest


def test_with_each_step_more_run_beside_them_and_no_old_one_leaves_before_the_last_is_passed() -> (
    None
):
    view = judging()
    for step, beside in ((1, 1), (2, 1), (3, 1), (4, 2), (5, 3)):
        view = lived_on(at_step(view, step))
        assert models(view) == ["a"] * 3 + ["b"] * beside
        assert view.deployments[MINI].revision.state is RevisionState.JUDGED


def test_once_all_is_passed_the_old_ones_leave_and_only_then_it_has_served() -> None:
    view = lived_on(at_step(judging(), 5))
    passed = replace(view.canaries.canary(CANARY), promoting=True)
    view = replace(view, canaries=view.canaries.having(passed))
    assert decisions(view, PROVEN, DEADLINES) == [LetOn(MINI)]
    view = applied(view, [LetOn(MINI)], lambda: "", NOON)
    assert not any(isinstance(d, Confirm) for d in decisions(view, PROVEN, DEADLINES))
    view = lived_on(view)
    assert models(view) == ["b"] * 3
    assert view.deployments[MINI].revision.state is RevisionState.SERVED


def test_what_fails_there_fails_the_revision_and_its_canary_and_all_of_it_leaves_at_once() -> None:
    view = with_candidates(at_step(judging(), 4), 2)
    bad = replace(view.replicas[candidate(view, "b0").id], state=ReplicaState.BACKOFF)
    view = view.with_replica(replace(bad, crashes=CRASH_LOOP))
    (give_up,) = decisions(view, PROVEN, DEADLINES)
    assert isinstance(give_up, GiveUp)
    view = applied(view, [give_up], lambda: "", NOON)
    assert {r.id: r.state for r in view.replicas.values() if r.id.startswith("b")} == {
        "b0": ReplicaState.DRAINING,
        "b1": ReplicaState.DRAINING,
    }
    over = view.canaries.canary(CANARY)
    assert over.state is CanaryState.ROLLED_BACK
    assert over.why.startswith("revision 2 failed: b0 ended 3 times")
    assert lived_on(view).deployments[MINI].revision.undoes == 2
    assert models(lived_on(view)) == ["a"] * 3


@pytest.mark.parametrize("state", [CanaryState.ABORTED, CanaryState.ROLLED_BACK])
def test_a_revision_whose_canary_has_ended_or_is_gone_never_takes_their_place(
    state: CanaryState,
) -> None:
    view = with_candidates(judging(), 1)
    over = ended(view.canaries.canary(CANARY), state, "too slow", NOON)
    there = replace(view, canaries=view.canaries.having(over))
    gone = replace(view, canaries=view.canaries.without(CANARY))
    for each in (there, gone):
        assert models(lived_on(each)) == ["a"] * 3
        assert [r.state for r in lived_on(each).deployments[MINI].revisions] == [
            RevisionState.FAILED,
            RevisionState.SERVED,
        ]


def gpu_node(*devices: str) -> Node:
    one = node()
    there = Resources(devices=tuple(Device(uuid=each) for each in devices))
    return replace(one, facts=replace(one.facts, resources=there))


def on_devices(view: ClusterView) -> ClusterView:
    for number, each in enumerate(list(view.replicas.values())):
        view = view.with_replica(replace(each, devices=(f"g{number}",)))
    return view


def test_where_accelerators_do_not_suffice_the_canary_waits_and_says_for_what() -> None:
    full = gpu_node("g0", "g1")
    view = on_devices(judging(replicas=2, nodes=(full,), engine="vllm"))
    assert decisions(view, PROVEN, DEADLINES) == []
    assert missing(view, view.canaries.canary(CANARY)) == (
        "revision 2 needs 1 more replica beside the others, and no node has 1 free accelerator"
    )
    more = view.with_node(gpu_node("g0", "g1", "g2"))
    assert len(decisions(more, PROVEN, DEADLINES)) == 1


def test_an_old_one_that_is_lost_has_room_before_the_candidate() -> None:
    view = on_devices(judging(replicas=2, nodes=(gpu_node("g0", "g1"),), engine="vllm"))
    view = view.without_replica(replica("a1").id)
    (place,) = decisions(view, PROVEN, DEADLINES)
    assert isinstance(place, Place)
    assert (place.digest, place.devices) == ("", ("g1",))


def test_what_leaves_its_node_has_another_of_its_own_revision_in_its_place() -> None:
    view = with_candidates(judging(), 1)
    leaving = replace(node(), intent=NodeIntent.LEAVING)
    view = lived_on(view.with_node(leaving))
    assert models(view) == ["a"] * 3 + ["b"]
    assert {r.node for r in view.replicas.values()} == {"n2"}


def test_scaled_while_judged_both_have_what_is_wanted_then() -> None:
    view = lived_on(at_step(judging(), 4))
    known = view.deployments[MINI]
    for wanted, beside in ((6, 3), (2, 1)):
        scaled = changed(known, replace(known.spec, replicas=wanted), NOON)
        assert models(lived_on(view.with_deployment(scaled))) == ["a"] * wanted + ["b"] * beside


def test_while_its_rollout_is_paused_no_more_of_it_are_made() -> None:
    view = judging()
    view = view.with_deployment(paused(view.deployments[MINI], NOON))
    assert decisions(view, PROVEN, DEADLINES) == []
    assert missing(view, view.canaries.canary(CANARY)) == (
        "the rollout of mini is paused: `penstock rollout resume mini` goes on"
    )


def test_clients_are_told_what_those_have_that_serve_them_not_what_is_judged() -> None:
    view = judging()
    small = candidate(view)
    status = replace(small.status, max_model_len=100, endpoints=("/v1/embeddings",))
    view = view.with_replica(replace(small, status=status))
    for old in old_ones(serving_deployment()):
        said = replace(old.status, max_model_len=4000, endpoints=("/v1/completions",))
        view = view.with_replica(replace(old, status=said))
    (route,) = routes_of(view).deployments
    assert (route.max_model_len, route.endpoints) == (4000, ("/v1/completions",))
    assert (route.model, route.template_digest) == ("a", DIGEST_A)
    told = status_of(view, view.deployments[MINI])
    assert (told.phase, told.ready, told.rollout.ready) == (DeploymentPhase.UPDATING, 3, 1)
    assert told.message.startswith("revision 2 is judged beside revision 1: `penstock canary")


def test_neither_stands_in_for_the_other() -> None:
    view = with_candidates(judging(), 1)
    for old in old_ones(serving_deployment()):
        view = view.with_replica(replace(old, evidence=Evidence.DOUBTED))
    known = view.deployments[MINI]
    assert [r.id for r in serving(view, known)] == ["a0", "a1", "a2", "b0"]
    for old in old_ones(serving_deployment()):
        view = view.without_replica(old.id)
    assert prospect_of(view, known).availability is not Availability.SERVING


def test_it_takes_no_role_from_those_beside_it() -> None:
    view = with_candidates(judging(), 1)
    known = view.deployments[MINI]
    sharing = replace(known.spec.sharing, roles=Roles(1, 2))
    view = view.with_deployment(replace(known, spec=replace(known.spec, sharing=sharing)))
    told = with_roles(view.without_replica(replica("a0").id)).replicas
    assert sorted(r.role for r in told.values() if r.id != "b0") == ["decode", "prefill"]
    assert told[candidate(view, "b0").id].role == Role.DECODE


def test_what_is_missing_is_told_as_it_stands() -> None:
    view = judging()
    asked: Canary = view.canaries.canary(CANARY)
    starting = view.with_replica(candidate(view, state=ReplicaState.STARTING))
    assert missing(starting, asked) == ("0 of the 1 replicas of revision 2 are ready, others load")
    nowhere = judging(nodes=())
    assert missing(nowhere, asked).endswith("no node is ready: start one with `penstock node`")
    none = judging(replicas=0)
    assert missing(none, asked) == "mini is scaled to 0 replicas: give it one with `penstock scale`"
    assert not any(isinstance(d, Drain) for d in decisions(view, PROVEN, DEADLINES))
