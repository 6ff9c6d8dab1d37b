"""What has to be found of a template before clients have it."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from datetime import timedelta

import pytest

from penstock.control.errors import Code, PenstockError
from penstock.control.managers.rollout.specs import with_spec
from penstock.control.state.canary.canary import Canary
from penstock.control.state.canary.ending import check_promoted
from penstock.control.state.canary.spec import CanarySpec, Target
from penstock.control.state.canary.starting import started
from penstock.control.state.cluster import ClusterView
from penstock.control.state.rollout.deployment import DeploymentSpec
from penstock.control.state.rollout.evidence import check_live, check_share
from penstock.control.state.rollout.kept_evidence import (
    IN_ALL,
    OF_A_TEMPLATE,
    DeploymentPolicy,
    KeptEvidence,
    Stage,
    TemplateEvidence,
)
from penstock.control.state.rollout.revision import NOBODY
from penstock.control.state.rollout.template import template_digest
from penstock.control.state.rollout.update import RolloutSettings, Update
from penstock.control.state.routing.limits import CanaryWeight, Sharing
from tests.fakes.control_values import NOON, deployment, in_service, spec

HOUR = timedelta(hours=1)
LIVE = DeploymentPolicy((Stage.LIVE,))
BOTH = DeploymentPolicy((Stage.CANARY, Stage.LIVE))
B = template_digest(spec(model="b").template)


def told(kind: str = "regression", *, passed: bool = True, hours: int = 1) -> TemplateEvidence:
    own = f"{kind} {passed} {hours}"
    return TemplateEvidence(own, B, "mini", 2, kind, passed, NOON - hours * HOUR)


def view_of(policy: DeploymentPolicy, *found: TemplateEvidence) -> ClusterView:
    kept = KeptEvidence(policy=policy)
    for each in found:
        kept = kept.having(each)
    view = ClusterView(evidence=kept).with_deployment(in_service(deployment()))
    return view.with_deployment(in_service(deployment(spec(name="next", model="b"), uid="u2")))


def put(view: ClusterView, wanted: DeploymentSpec) -> ClusterView:
    return with_spec(view, wanted, NOON, NOBODY)


def refused(match: str) -> pytest.RaisesExc[PenstockError]:
    return pytest.raises(
        PenstockError, match=match, check=lambda error: error.code is Code.NO_EVIDENCE
    )


@pytest.mark.parametrize(
    ("policy", "found", "why"),
    [
        (LIVE, [], "it has no evidence"),
        (LIVE, [told()], ""),
        (replace(LIVE, kind="shadow"), [told()], "it has no evidence of kind shadow"),
        (LIVE, [told(passed=False)], "its newest regression, of 2026-01-02, failed"),
        (LIVE, [told(passed=False), told(hours=2)], "failed"),
        (LIVE, [told(), told(passed=False, hours=2)], ""),
        (LIVE, [told(), told("shadow", passed=False)], "its newest shadow, .* failed"),
        (LIVE, [told("canary")], ""),
        (replace(LIVE, not_older_than_hours=2), [told(hours=3)], "older than 2 hours"),
        (replace(LIVE, not_older_than_hours=2), [told(hours=2)], ""),
        (LIVE, [told(hours=-1)], "it has no evidence"),
        (DeploymentPolicy(), [], ""),
    ],
)
def test_the_newest_of_each_kind_counts_and_none_may_have_failed(
    policy: DeploymentPolicy, found: list[TemplateEvidence], why: str
) -> None:
    with refused(why) if why else nullcontext():
        check_live(view_of(policy, *found), "mini", B, NOON)


def test_what_a_canary_found_lets_no_share_go_to_it() -> None:
    with refused("it has no evidence"):
        check_share(view_of(BOTH, told("canary")), "mini", B, NOON)
    check_share(view_of(BOTH, told("canary", passed=False), told()), "mini", B, NOON)
    check_share(view_of(LIVE), "mini", B, NOON)


def test_a_deployment_that_has_served_goes_to_another_template_with_evidence_alone() -> None:
    with refused("mini cannot go live with it"):
        put(view_of(LIVE), spec(model="b"))
    put(view_of(LIVE, told()), spec(model="b"))
    put(view_of(LIVE), replace(spec(), replicas=4))


def test_the_first_template_of_a_deployment_and_those_that_served_it_are_free() -> None:
    assert put(view_of(LIVE), spec(name="other", model="b"))
    untried = view_of(LIVE).with_deployment(deployment())
    assert put(untried, spec(model="b"))
    changed = put(view_of(LIVE, told()), spec(model="b"))
    bare = replace(changed, evidence=KeptEvidence(policy=LIVE))
    assert put(bare, spec())


def test_what_a_canary_judges_needs_what_a_share_needs() -> None:
    rollout = RolloutSettings(Update(canary="try"))
    wanted = replace(spec(model="b"), rollout=rollout)
    assert put(view_of(LIVE), wanted).canaries.named
    with refused("mini cannot share its clients with it"):
        put(view_of(BOTH), wanted)
    assert put(view_of(BOTH, told()), wanted).canaries.named


def test_a_share_takes_evidence_whoever_gives_it() -> None:
    sharing = replace(spec(), sharing=Sharing(canary=(CanaryWeight("next", 50),)))
    canary = CanarySpec("try", Target("mini"), "next")
    with refused("mini cannot share its clients with it"):
        put(view_of(BOTH), sharing)
    with refused("mini cannot share its clients with it"):
        started(view_of(BOTH), canary, "uid", NOON, NOBODY)
    put(view_of(BOTH, told()), sharing)
    started(view_of(BOTH, told()), canary, "uid", NOON, NOBODY)
    before = put(view_of(BOTH, told()).without_deployment(NEXT), sharing)
    bare = replace(before, evidence=KeptEvidence(policy=BOTH))
    with refused("mini cannot share its clients with it"):
        put(bare, spec(name="next", model="b"))


NEXT = spec(name="next").name


def test_a_canary_is_promoted_by_hand_with_evidence_alone_unless_it_has_passed_its_steps() -> None:
    half = Canary(CanarySpec("try", Target("mini"), "next"), "uid", NOON, candidate="next")
    with refused("mini cannot go live with it"):
        check_promoted(view_of(LIVE), half, NOON)
    check_promoted(view_of(LIVE, told()), half, NOON)
    step = replace(half.spec, steps=half.spec.steps[:0] or half.spec.steps)
    done = replace(half, spec=step, passed=(None,) * len(step.steps))  # type: ignore[arg-type]
    check_promoted(view_of(LIVE), done, NOON)


def test_the_oldest_are_forgotten_of_each_template_and_of_all() -> None:
    kept = KeptEvidence()
    for hours in range(OF_A_TEMPLATE + 5):
        kept = kept.having(replace(told(), id=str(hours), at=NOON + hours * HOUR))
    assert [each.id for each in kept.of(B)] == [str(n) for n in range(24, 4, -1)]
    assert len(kept.told) == OF_A_TEMPLATE
    many = {str(n): replace(told(hours=-n), id=str(n), digest=str(n)) for n in range(IN_ALL)}
    full = KeptEvidence(many).having(replace(told(hours=-IN_ALL), id="new"))
    assert len(full.told) == IN_ALL
    assert "0" not in full.told
