"""What a canary may be of, and what it is told where it may not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from penstock.adapters.adapter import BaseModelFamily
from penstock.adapters.alias import Alias, Move, Target
from penstock.control.errors import Code, InvalidInput, PenstockError
from penstock.control.state.adapters.registry import AdapterRegistry
from penstock.control.state.canary.canary import CanaryState
from penstock.control.state.canary.spec import CanarySpec, parsed_target
from penstock.control.state.canary.starting import started
from penstock.control.state.cluster import ClusterView
from penstock.control.state.rollout.revision import Origin
from penstock.control.state.routing.limits import CanaryWeight, Sharing
from penstock.control.state.shadow.shadows import Shadow
from penstock.control.state.shadow.spec import Candidate, Primary, ShadowSpec
from tests.adapters.examples import ref, version
from tests.fakes.canary_values import canary
from tests.fakes.control_values import NOON, deployment, in_service, spec

TEMPLATE = replace(spec().template, max_adapters=2)


def view() -> ClusterView:
    registry = AdapterRegistry()
    for name in ("a@1", "a@2", "b@1"):
        registry = registry.with_version(version(name, name, family=TEMPLATE.family))
    registry = registry.with_version(version("far@1", "far", family=BaseModelFamily("other")))
    for name, named in (("sea", {"a@1": 1}), ("both", {"a@1": 1, "a@2": 1})):
        target = Target.split({ref(each): weight for each, weight in named.items()})
        registry = registry.with_alias(Alias("mini", name, (Move(target, NOON, "alice"),)))
    found = ClusterView(adapters=registry)
    for name in ("mini", "next", "third", "fourth"):
        of = replace(spec(name=name), template=TEMPLATE)
        found = found.with_deployment(in_service(deployment(of, uid=name)))
    shared = replace(spec(name="shared"), sharing=Sharing(canary=(CanaryWeight("next", 5),)))
    found = found.with_deployment(deployment(shared, uid="shared"))
    shadow = ShadowSpec("ab", Primary("mini"), Candidate("next"), share_permille=100)
    made = Shadow(shadow, "s1", 1, NOON)
    return replace(found, shadows=found.shadows.having(made))


def asked(target: str, candidate: str = "", shadow: str = "") -> CanarySpec:
    return CanarySpec("new", parsed_target(target), candidate, shadow=shadow)


def start(said: CanarySpec, found: ClusterView | None = None) -> tuple[str, str, CanaryState]:
    made = started(found or view(), said, "c9", NOON, Origin("alice", "try it"))
    assert (made.uid, made.by, made.reason, made.permille) == ("c9", "alice", "try it", 0)
    return made.stable, made.candidate, made.state


def test_it_begins_with_nobody_in_it() -> None:
    assert start(asked("mini", "next", "ab")) == ("mini", "next", CanaryState.RUNNING)
    assert start(asked("mini:sea", "a@2")) == ("a@1", "a@2", CanaryState.RUNNING)


def test_one_without_a_candidate_waits_for_a_revision_and_has_nothing() -> None:
    other = view()
    taken = replace(other, canaries=other.canaries.having(canary(weighted=True)))
    assert start(asked("mini"), taken) == ("mini", "", CanaryState.WAITING)


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (asked("gone", "next"), "target is 'gone': no deployment 'gone'"),
        (asked("mini", "gone"), "candidate is 'gone': no deployment 'gone'"),
        (asked("mini", "mini"), "candidate is 'mini': that is the target itself"),
        (asked("shared", "next"), "shared shares its requests out by its setting canary"),
        (asked("mini", "shared"), "`penstock set shared canary=`"),
        (asked("mini:gone", "a@2"), "target is 'mini:gone': mini has no alias 'gone'"),
        (asked("mini:both", "b@1"), r"target is 'mini:both': it is split \(a@1 1, a@2 1\)"),
        (asked("mini:sea", "a@1"), "candidate is 'a@1': the alias names it"),
        (asked("mini:sea", "a@9"), "candidate is 'a@9': a@9 is not registered"),
        (asked("mini:sea", "far@1"), "far@1 is made for other"),
        (asked("mini", "next", "gone"), "shadow is 'gone': no shadow 'gone'"),
        (asked("third", "next", "ab"), "it compares mini, and the target is third"),
        (asked("mini", "third", "ab"), "its candidate is next, and the canary's is third"),
    ],
)
def test_what_could_not_be_shared_is_refused_by_the_field_that_names_it(
    said: CanarySpec, words: str
) -> None:
    with pytest.raises(InvalidInput, match=words):
        start(said)


@pytest.mark.parametrize(
    ("target", "candidate"), [("mini", "third"), ("third", "next"), ("next", "third")]
)
def test_no_two_have_the_same_arm(target: str, candidate: str) -> None:
    found = view()
    taken = replace(found, canaries=found.canaries.having(canary()))
    with pytest.raises(PenstockError, match="is an arm of canary 'try', which is running") as why:
        start(asked(target, candidate), taken)
    assert why.value.code is Code.CANARY_OWNS
    assert start(asked("third", "fourth"), taken)
    over = replace(canary(), state=CanaryState.ABORTED)
    assert start(asked("mini", "third"), replace(found, canaries=found.canaries.having(over)))
