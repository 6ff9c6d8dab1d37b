"""When a revision has served."""

from __future__ import annotations

from dataclasses import replace

from penstock.control.state.cluster import ClusterView
from penstock.control.state.fleet.replica import Evidence
from penstock.control.state.rollout.actions import Confirm, Place
from penstock.control.state.rollout.deployment import created
from penstock.control.state.rollout.placing import applied
from penstock.control.state.rollout.reconcile import decisions, plan
from penstock.control.state.rollout.revision import RevisionState
from tests.fakes.control_values import DEADLINES, MIN_READY, MINI, NOON, UID, node, replica, spec


def test_a_revision_serves_once_all_its_replicas_are_ready() -> None:
    view = ClusterView().with_node(node()).with_deployment(created(spec(), NOON, uid=UID))
    made = plan(view, NOON, DEADLINES)
    assert made == [Place(MINI, node("n1").id)]
    view = view.with_replica(replace(replica(), evidence=Evidence.ANSWERS))
    assert plan(view, NOON, DEADLINES) == []
    later = NOON + MIN_READY
    assert plan(view, later, DEADLINES) == [Confirm(MINI)]
    view = applied(view, decisions(view, later, DEADLINES), iter("abc").__next__, NOON)
    assert view.deployments[MINI].revision.state is RevisionState.SERVED
    assert plan(view, NOON, DEADLINES) == []


def test_a_deployment_of_no_replicas_has_no_revision_that_served() -> None:
    view = ClusterView().with_node(node()).with_deployment(created(spec(replicas=0), NOON, uid=UID))
    assert plan(view, NOON, DEADLINES) == []
    assert view.deployments[MINI].revision.state is RevisionState.ROLLING_OUT
