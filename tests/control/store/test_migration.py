"""What documents of older heads become."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from penstock.control.state.cluster import ClusterView
from penstock.control.state.rollout.deployment import AdapterBinding
from penstock.control.state.routing.degrading import Degrading, degrading
from penstock.control.state.routing.limits import Canary, Limits, SelectionPolicy, Sharing
from penstock.control.state.tenancy.spend import Budgets
from penstock.control.store.documents import changes_between, digest_of, view_of
from penstock.control.store.migration import migrations
from penstock.control.store.store import Contents, Document, Key, Stored
from tests.fakes.control_values import MINI, NOON, deployment, spec

KEY = Key("deployment", "mini")
# What documents of the version before lack.
NEW = {"wait_budget_ms", "kv_pressure", "max_prompt_tokens", "max_completion_tokens", "max_n"}
LATER = {"degrade", "context", "budget_usd_per_day", "budget_tokens_per_day"}
NEW |= {"progress_deadline_ms", "selection_policy", "canary", *LATER}


def document(**changes: Any) -> Document:
    """A deployment as this version writes it, changed."""
    (change,) = changes_between(ClusterView(), ClusterView().with_deployment(deployment(spec())))
    assert change.document is not None
    return {**change.document, **changes}


def migrated(old: Document) -> Document:
    """What is in the store after the migration, which has nothing to do a second time."""
    changes = migrations({KEY: Stored(old, 1)}, digest_of)
    new = changes[0].document if changes else old
    assert new is not None
    assert not migrations({KEY: Stored(new, 2)}, digest_of)
    return new


def limits_of(found: Document) -> tuple[Limits, Sharing]:
    read = view_of(Contents(1, {KEY: Stored(found, 1)}), NOON).deployments[MINI].spec
    return read.limits, read.sharing


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ((0, 0), Limits(4, first_event_deadline_ms=7)),
        ((5, 0), Limits(4, max_queued=5, first_event_deadline_ms=7)),
        ((0, 6), Limits(4, queue_deadline_ms=6, first_event_deadline_ms=7)),
        ((5, 6), Limits(4, 5, 6, 7)),
    ],
)
def test_a_queue_without_a_limit_gets_the_default_one(said: tuple[int, int], meant: Limits) -> None:
    queued, deadline = said
    old = document(max_ongoing=4, max_queued=queued, queue_deadline_ms=deadline)
    old = {**old, "first_event_deadline_ms": 7}
    found = migrated({key: value for key, value in old.items() if key not in NEW})
    assert limits_of(found) == (meant, Sharing())


def test_what_this_version_wrote_is_read_as_it_was_written() -> None:
    nobody_waits = document(
        max_queued=0, selection_policy="session", canary=[{"deployment": "b", "permille": 9}]
    )
    assert migrated(nobody_waits) is nobody_waits
    sharing = Sharing(SelectionPolicy.SESSION, (Canary("b", 9),))
    assert limits_of(nobody_waits) == (Limits(max_queued=0), sharing)


BINDING = {"alias": "pirate", "adapter": "pirate@1", "source": "penstock-mini/pirate"}


def before_the_registry(**changes: Any) -> Document:
    """As the version before wrote it."""
    later = ("bindings", "max_adapters", "max_adapter_rank")
    return {key: value for key, value in document(**changes).items() if key not in later}


def test_adapters_of_a_template_wait_to_be_registered_and_replace_no_replica() -> None:
    found = migrated(before_the_registry(adapters=[BINDING], template_digest="as it was"))
    read = view_of(Contents(1, {KEY: Stored(found, 1)}), NOON).deployments[MINI]
    assert read.bindings == (AdapterBinding("pirate", "pirate@1", "penstock-mini/pirate"),)
    assert read.template_digest == "as it was"
    assert (read.spec.template.adapter_slots, read.spec.template.adapter_rank) == (4, 16)


def test_a_template_without_adapters_takes_none() -> None:
    found = migrated(before_the_registry(adapters=[]))
    read = view_of(Contents(1, {KEY: Stored(found, 1)}), NOON).deployments[MINI]
    assert (read.bindings, read.spec.template) == ((), spec().template)
    assert read.template_digest == deployment(spec()).template_digest


def test_nothing_is_tried_instead_of_a_deployment_from_before_there_were_ladders() -> None:
    old = {key: value for key, value in document(max_n=3).items() if key not in LATER}
    read = view_of(Contents(1, {KEY: Stored(migrated(old), 1)}), NOON).deployments[MINI]
    assert (read.spec.degrading, read.spec.budgets) == (Degrading(), Budgets())
    assert (read.spec.limits.max_n, read.template_digest) == (3, deployment().template_digest)


def test_ladders_and_budgets_are_read_as_they_were_written() -> None:
    wanted = replace(
        spec(),
        degrading=degrading({"default": ["fallback:b"], "budget": []}, "trim"),
        budgets=Budgets(0.25, 2**40),
    )
    view = ClusterView().with_deployment(deployment(wanted))
    (change,) = changes_between(ClusterView(), view)
    assert change.document is not None
    stored = {KEY: Stored(json.loads(json.dumps(change.document)), 1)}
    assert view_of(Contents(1, stored), NOON).deployments[MINI].spec == wanted
