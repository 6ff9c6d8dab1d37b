"""What deployments, tenants and replicas say survives a restart of the head."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from types import MappingProxyType

import pytest

from penstock.control.state.applied import Applied
from penstock.control.state.cluster import ClusterView
from penstock.control.state.fleet.liveness import Liveness
from penstock.control.state.fleet.replica import FailedAdapter
from penstock.control.state.problems import HeadHealth, ProblemKind, problems
from penstock.control.state.rollout.deployment import changed
from penstock.control.state.rollout.revision import Origin
from penstock.control.state.routing.degrading import degrading
from penstock.control.state.routing.limits import CanaryWeight, Limits, SelectionPolicy, Sharing
from penstock.control.state.routing.program import NO_TEXTS, digest_of
from penstock.control.state.routing.program_setting import Program, Roles
from penstock.control.state.tenancy.spend import Budgets
from penstock.control.state.tenancy.tenancy import Tenancy
from penstock.control.state.tenancy.tenants import ApiKey, TenantSpec, created_tenant
from penstock.control.store.documents import changes_between, view_of
from penstock.control.store.store import Contents, Document, Key, Stored
from tests.fakes.control_values import MINI, NOON, deployment, in_service, replica, spec

ADAPTERS_OF_NEWER_HEADS = (
    "adapter_digests",
    "failed_adapters",
    "adapter_slots",
    "max_adapter_rank",
)


def told() -> ClusterView:
    """A view of one replica that told of adapters."""
    one = replica()
    status = replace(
        one.status,
        adapters=("pirate@1",),
        adapter_digests=("a" * 64,),
        failed_adapters=(FailedAdapter("json@1", "b" * 64, "its rank is 64"),),
        adapter_slots=4,
        max_adapter_rank=16,
    )
    return ClusterView().with_replica(replace(one, status=status))


def stored(view: ClusterView, *, without: tuple[str, ...] = ()) -> Contents:
    """The view's documents, each without these fields."""
    documents = {}
    for change in changes_between(ClusterView(), view):
        assert change.document is not None
        document: Document = {k: v for k, v in change.document.items() if k not in without}
        documents[change.key] = Stored(document, 1)
    return Contents(1, MappingProxyType(documents))


def test_what_a_replica_told_of_its_adapters_is_known_to_the_next_head() -> None:
    view = told()
    restored = view_of(stored(view), NOON)
    assert restored.unreadable == ()
    (before,), (after,) = view.replicas.values(), restored.replicas.values()
    assert after.status == before.status


def test_documents_of_heads_that_knew_no_digests_are_read() -> None:
    restored = view_of(stored(told(), without=ADAPTERS_OF_NEWER_HEADS), NOON)
    assert restored.unreadable == ()
    (after,) = restored.replicas.values()
    assert (after.status.adapters, after.status.adapter_digests) == (("pirate@1",), ())
    assert (after.status.failed_adapters, after.status.adapter_slots) == ((), 0)


def test_a_deployment_with_the_policy_of_a_newer_head_is_kept_and_told() -> None:
    contents = stored(ClusterView().with_deployment(deployment()))
    newer = {
        key: replace(it, document={**it.document, "selection_policy": "by_moon"})
        for key, it in contents.documents.items()
    }
    view = view_of(replace(contents, documents=newer), NOON)
    assert view.unreadable == ()
    assert view.deployments[MINI].spec.sharing.policy is SelectionPolicy.POWER_OF_TWO
    (told,) = problems(view, Liveness(), HeadHealth(), NOON, NO_TEXTS)
    assert (told.kind, told.subject) == (ProblemKind.UNREADABLE, "deployment mini")
    assert "its selection policy 'by_moon' is one of a newer Penstock" in told.text
    anew = changed(view.deployments[MINI], spec(replicas=3), NOON)
    assert not problems(view.with_deployment(anew), Liveness(), HeadHealth(), NOON, NO_TEXTS)


def test_what_a_deployment_says_is_read_as_it_was_written() -> None:
    wanted = replace(
        spec(),
        limits=Limits(max_queued=0),
        sharing=Sharing(SelectionPolicy.SESSION, (CanaryWeight("b", 9),)),
        degrading=degrading({"default": ["fallback:b"], "budget": []}, "trim"),
        budgets=Budgets(0.25, 2**40),
    )
    view = ClusterView().with_deployment(deployment(wanted))
    (change,) = changes_between(ClusterView(), view)
    assert change.document is not None
    kept = {change.key: Stored(json.loads(json.dumps(change.document)), 1)}
    assert view_of(Contents(1, kept), NOON).deployments[MINI].spec == wanted


@pytest.mark.parametrize("bound", ["models", "tokens_per_day", "degrade"])
def test_a_tenant_that_has_lost_a_bound_is_not_read_as_one_without_it(bound: str) -> None:
    acme = created_tenant("acme", TenantSpec(models=("mini",)), NOON, uid="a" * 32)
    view = ClusterView(tenancy=Tenancy(tenants={"acme": acme}))
    assert view_of(stored(view), NOON).tenancy.tenants == {"acme": acme}
    damaged = view_of(stored(view, without=(bound,)), NOON)
    assert damaged.tenancy.tenants == {}
    assert damaged.unreadable == (f"tenant 'acme': ValueError: {bound} is missing",)


def test_a_key_that_has_lost_its_end_is_not_read_as_one_that_never_ends() -> None:
    key = ApiKey("k", "acme", "ci", "0" * 64, NOON, expires_at=NOON + timedelta(days=1))
    view = ClusterView(tenancy=Tenancy(keys={"k": key}))
    assert view_of(stored(view), NOON).tenancy.keys == {"k": key}
    damaged = view_of(stored(view, without=("expires_at",)), NOON)
    assert damaged.tenancy.keys == {}
    assert damaged.unreadable == ("api_key 'k': ValueError: expires_at is missing",)


def test_revisions_are_known_to_the_next_head_and_those_of_an_older_one_begin() -> None:
    known = changed(in_service(deployment()), spec(model="b"), NOON, Origin("bob", "faster"))
    view = ClusterView().with_deployment(known)
    assert view_of(stored(view), NOON).deployments[MINI].revisions == known.revisions
    old = view_of(stored(view, without=("revisions", "restart_generation")), NOON)
    assert [each.number for each in old.deployments[MINI].revisions] == [known.generation + 1]


@pytest.mark.parametrize("lost", [0, 1])
def test_a_revision_that_cannot_be_read_any_more_costs_itself_and_not_its_deployment(
    lost: int,
) -> None:
    known = in_service(deployment())
    known = in_service(changed(known, spec(model="b"), NOON, Origin("ann", "why")))
    contents = stored(ClusterView().with_deployment(known))
    (document,) = (each.document for each in contents.documents.values())
    document["revisions"][lost]["state"] = "of a later version"
    restored = view_of(contents, NOON)
    found = restored.deployment(MINI)
    assert restored.unreadable == ()
    assert (found.spec, found.target.template) == (known.spec, known.spec.template)
    assert len(found.revisions) == 2 - (lost == 0)
    assert found.revision.number > known.revisions[0].number


def test_what_a_set_of_documents_said_is_known_to_the_next_head() -> None:
    fields = {"replicas": 2, "labels.team": "search", "degrade": ["trim"], "preload": None}
    said = Applied("default", "deployment", "mini", "u1", made=True, fields=fields)
    view = replace(ClusterView(), applied={said.key: said})
    assert view_of(stored(view), NOON).applied == {said.key: said}


def test_a_program_is_read_again_with_its_text_stored_by_its_digest() -> None:
    text = "async def route(request, engines, stats, *, share=0.5): ..."
    program = Program(digest=digest_of(text), args=(("share", 0.1),), text=text)
    asked = Sharing(SelectionPolicy.PROGRAM, program=program, roles=Roles(1, 2))
    view = ClusterView().with_deployment(deployment(replace(spec(replicas=3), sharing=asked)))
    kept = {
        each.key: Stored(json.loads(json.dumps(each.document)), 1)
        for each in changes_between(ClusterView(), view)
    }
    assert text not in json.dumps(kept[Key("deployment", "mini")].document)
    again = view_of(Contents(1, kept), NOON)
    assert again.deployments[MINI].spec == view.deployments[MINI].spec
    assert again.programs == {digest_of(text): text}
