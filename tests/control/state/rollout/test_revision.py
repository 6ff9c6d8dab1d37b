"""Revisions: their numbers, which are kept, and where an undo leads."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from penstock.control.errors import Code
from penstock.control.state.rollout.deployment import DeploymentSpec, changed, created, numbered
from penstock.control.state.rollout.revision import (
    Origin,
    Revision,
    RevisionState,
    revision_of,
    served,
    to_undo_to,
)
from penstock.control.state.rollout.update import RolloutSettings
from tests.fakes.control_errors import raises_code
from tests.fakes.control_values import NOON, SECOND, deployment, in_service, spec


def test_each_change_of_the_template_is_a_revision_with_who_and_why() -> None:
    known = created(spec(), NOON, uid="u1", origin=Origin("alice", "first"))
    later = NOON + SECOND
    known = changed(known, spec(model="b"), later, Origin("bob", "faster"))
    first, second = known.revisions
    assert (first.number, first.by, first.reason, first.at) == (1, "alice", "first", NOON)
    assert (second.number, second.by, second.reason, second.at) == (2, "bob", "faster", later)
    assert second.template.model == "b"
    assert known.revision == second


def test_a_change_that_takes_no_new_replicas_is_none() -> None:
    known = changed(deployment(), spec(replicas=4), NOON)
    assert [each.number for each in known.revisions] == [1]


def test_one_that_never_served_is_replaced_by_the_next() -> None:
    known = changed(deployment(), spec(model="b"), NOON)
    assert known.revisions[0].state is RevisionState.REPLACED
    known = changed(in_service(known), spec(model="c"), NOON)
    assert known.revisions[1].state is RevisionState.SERVED


def test_a_template_that_comes_back_has_its_digest_under_a_new_number() -> None:
    first = deployment()
    known = changed(changed(first, spec(model="b"), NOON), spec(), NOON)
    assert [each.number for each in known.revisions] == [1, 2, 3]
    assert [each.number for each in in_service(known).revisions] == [2, 3]
    assert known.revision.template_digest == first.template_digest
    of = known.revision_of(first.template_digest, known.generation)
    assert of == known.revision
    before = known.revision_of(first.template_digest, first.generation)
    assert before is not None
    assert before.number == 1
    assert known.revision_of("unknown", 1) is None


def test_undo_leads_to_the_last_that_served() -> None:
    known = in_service(deployment())
    known = changed(known, spec(model="bad"), NOON)
    known = changed(known, spec(model="worse"), NOON)
    assert to_undo_to(known.revisions).number == 1
    with raises_code(Code.NOTHING_TO_UNDO):
        to_undo_to(deployment().revisions)


def test_a_number_that_is_not_kept_is_named_with_those_that_are() -> None:
    known = changed(deployment(), spec(model="b"), NOON)
    with raises_code(Code.UNKNOWN_REVISION, match="no revision 7 is kept: there are 1, 2"):
        revision_of(known.revisions, 7)


def test_numbers_of_an_older_heads_deployment_begin_above_its_generation() -> None:
    old = replace(deployment(), generation=7, revisions=())
    first = numbered(old).revision
    assert (first.number, first.template_digest) == (8, old.template_digest)
    assert numbered(numbered(old)) == numbered(old)


def keeping(revisions: int, model: str) -> DeploymentSpec:
    """A spec of this model that keeps so many."""
    return replace(spec(model=model), rollout=RolloutSettings(revision_limit=revisions))


@given(
    st.lists(st.tuples(st.integers(0, 6), st.booleans()), max_size=30),
    st.integers(1, 5),
)
def test_numbers_grow_and_the_last_that_differ_are_kept(
    steps: list[tuple[int, bool]], keep: int
) -> None:
    known = deployment(keeping(keep, "m0"))
    history: list[Revision] = [known.revision]
    served_last = None
    for model, serves in steps:
        if serves:
            known = replace(known, revisions=served(known.revisions))
            served_last = known.template_digest
        wanted = keeping(keep, f"m{model}")
        known = changed(known, wanted, NOON)
        if known.revision.number != history[-1].number:
            history.append(known.revision)
        numbers = [each.number for each in known.revisions]
        *others, current = (each.template_digest for each in known.revisions)
        digests = {*others, current}
        assert numbers == sorted(set(numbers))
        assert len(set(others)) == len(others) <= keep
        assert known.revision.template == known.spec.template
        assert digests <= {each.template_digest for each in history}
        if served_last is not None:
            assert served_last in digests
    assert [each.number for each in history] == list(range(1, len(history) + 1))
