"""Plans for documents: whatever they say and whatever stands, a plan that is carried out leaves
nothing to plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.control.admin.apply.documents import read
from penstock.control.admin.apply.kinds import documents_of, kinds_of
from penstock.control.admin.apply.named_kind import Applier
from penstock.control.errors import BadDocuments
from penstock.control.managers.write import Write
from penstock.control.state.applied import flattened, merged, unflattened
from penstock.control.state.applying import Action, Options, Plan, planned, refusals
from penstock.control.state.cluster import ClusterView
from penstock.control.state.rollout.deployment import DeploymentName
from penstock.control.state.tenancy.tokens import Role
from tests.fakes.control_values import NOON

Document = dict[str, Any]

ALICE = Write("alice", Role.ADMIN)
NAMES = st.sampled_from(["a", "b", "c"])
SETS = st.sampled_from(["one", "two"])


def deployment(name: str, own: Mapping[str, Any]) -> Document:
    """A document of a simulated deployment."""
    head = {"penstock": "v1", "kind": "deployment", "name": name}
    return {**head, "engine": "simulated", "model": "m", **own}


def tenant(name: str, own: Mapping[str, Any]) -> Document:
    """A document of a tenant."""
    return {"penstock": "v1", "kind": "tenant", "id": name, **own}


def some(**values: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Any of these fields, or none."""
    return st.fixed_dictionaries({}, optional=values)


WORDS = st.dictionaries(st.sampled_from("xyz"), st.sampled_from(["1", "2"]), max_size=2)
OWN = some(
    replicas=st.integers(0, 3),
    max_queued=st.integers(1, 3),
    labels=WORDS,
    engine_args=some(ttft_ms=st.integers(1, 2), tokens_per_second=st.integers(1, 2)),
    update=some(max_surge=st.integers(1, 2), max_unavailable=st.integers(0, 1)),
    degrade=st.lists(st.sampled_from(["trim", "fallback:d", "reject"]), unique=True, max_size=1),
)
DOCUMENTS = st.lists(
    st.builds(deployment, NAMES, OWN)
    | st.builds(tenant, NAMES, some(max_streams=st.integers(0, 2), models=st.just(["a"]))),
    unique_by=lambda each: (each["kind"], each.get("name") or each.get("id")),
    max_size=5,
)


def plan(view: ClusterView, documents: Sequence[Document], options: Options) -> Plan:
    """What applying these comes to, an hour later than all before."""
    by = Applier(ALICE, NOON + timedelta(hours=len(view.applied)))
    return planned(view, read(documents), kinds_of(by), options)


def objects(view: ClusterView) -> set[tuple[str, str]]:
    """What stands."""
    return {
        *(("deployment", str(name)) for name in view.deployments),
        *(("tenant", name) for name in view.tenancy.tenants),
    }


HISTORIES = st.lists(st.tuples(SETS, DOCUMENTS, st.booleans()), max_size=4)


def after(history: Sequence[tuple[str, list[Document], bool]]) -> ClusterView:
    """The view once all of it was applied by force."""
    view = ClusterView()
    for name, documents, prune in history:
        view = plan(view, documents, Options(name, prune)).view
    return view


@given(HISTORIES, SETS, DOCUMENTS, st.booleans())
def test_a_plan_that_is_carried_out_leaves_nothing_to_plan(
    history: list[tuple[str, list[Document], bool]],
    name: str,
    documents: list[Document],
    prune: bool,
) -> None:
    options = Options(name, prune)
    once = plan(after(history), documents, options)
    assert not once.faults
    twice = plan(once.view, documents, options)
    assert {step.action for step in twice.steps} <= {Action.SAME}
    assert not refusals(twice)
    assert twice.view is once.view
    for document in documents:  # what is said stands
        if document["kind"] == "deployment":
            spec = once.view.deployments[DeploymentName(document["name"])].spec
            assert document.get("replicas", spec.replicas) == spec.replicas
            said = {k: str(v) for k, v in document.get("engine_args", {}).items()}
            assert said.items() <= dict(spec.template.engine_args).items()


@given(HISTORIES, SETS, DOCUMENTS)
def test_pruning_deletes_what_the_set_made_and_no_other(
    history: list[tuple[str, list[Document], bool]], name: str, documents: list[Document]
) -> None:
    view = after(history)
    mine = {(r.kind, r.name) for r in view.applied.values() if r.set_name == name and r.made}
    without = plan(view, documents, Options(name)).view
    pruned = plan(view, documents, Options(name, prune=True)).view
    said = {(each.kind, each.name) for each in read(documents)}
    assert objects(without) - objects(pruned) == (mine & objects(view)) - said
    assert objects(view) <= objects(without)


@given(HISTORIES, DOCUMENTS)
def test_what_is_exported_says_what_stands(
    history: list[tuple[str, list[Document], bool]], documents: list[Document]
) -> None:
    view = after([*history, ("one", documents, False)])
    exported = documents_of(view, Applier(ALICE, NOON))
    same = plan(view, exported, Options("exported"))
    assert {step.action for step in same.steps} <= {Action.SAME}
    assert replace(same.view, applied=view.applied) == view
    anew = plan(ClusterView(), exported, Options("anew")).view
    assert [d.spec for d in sorted_by_name(anew)] == [d.spec for d in sorted_by_name(view)]


def sorted_by_name(view: ClusterView) -> list[Any]:
    """The deployments."""
    return [view.deployments[name] for name in sorted(view.deployments)]


@given(HISTORIES, DOCUMENTS, st.integers(0, 5))
def test_where_one_document_is_bad_each_plan_says_so(
    history: list[tuple[str, list[Document], bool]], documents: list[Document], at: int
) -> None:
    bad = deployment("bad", {"replicas": -1})
    mixed = [*documents[:at], bad, *documents[at:]]
    faults = plan(after(history), mixed, Options("one")).faults
    assert [(each.document, each.path) for each in faults] == [(mixed.index(bad), ("replicas",))]


@given(st.dictionaries(st.sampled_from(["a", "b", "g.x", "g.y"]), st.integers(0, 2)))
def test_fields_are_flattened_and_back(fields: dict[str, int]) -> None:
    assert flattened(unflattened(fields, ["g"]), ["g"]) == fields


def test_what_is_said_no_longer_stays_where_somebody_else_has_set_it_since() -> None:
    assert merged({"a": 1, "b": 2, "c": 3}, {"a": 1, "b": 9}, {}) == {"b": 2, "c": 3}


def test_nobody_reads_a_document_without_its_words() -> None:
    for bad in ({}, {"penstock": "v1"}, {"penstock": "v1", "kind": []}):
        with pytest.raises(BadDocuments, match="document 1"):
            read([bad])
