"""Whether a deployment's revision gets on. Pure.

A revision that was never served to the full fails with the first of its replicas that its agent
gives up, that ends again and again, that does no work, or that is not ready in time: those of the
revision before serve on meanwhile. Where none served before there is nothing to go back to: its
replicas are tried again, ever more rarely (`reconcile.py`).
"""

from __future__ import annotations

from datetime import datetime, timedelta

from penstock.control.state.cluster import ClusterView
from penstock.control.state.fleet.replica import Evidence, Replica, ReplicaState
from penstock.control.state.fleet.serving import is_current
from penstock.control.state.rollout.deployment import Deployment
from penstock.control.state.rollout.revision import Cause, last_served

# Processes in a row that ended by themselves.
CRASH_LOOP = 3


def cause_of_failure(
    view: ClusterView, deployment: Deployment, now: datetime, ready: timedelta
) -> Cause | None:
    """Why the revision is to be given up; None: it is not. `ready`: what a replica has from its
    start to ready, where the deployment says nothing."""
    revision = deployment.revision
    if not revision.is_under_way or revision.undoes or deployment.paused:
        return None
    if last_served(deployment.revisions) is None:
        return None
    limit = _limit(deployment, ready)
    found = (
        Cause(why, replica.id)
        for replica in view.replicas_for(deployment)
        if replica.template_digest == revision.template_digest
        and is_current(deployment, replica)
        and (why := _cause(replica, now, limit))
    )
    return next(found, None)


def is_hopeless(replica: Replica) -> bool:
    """Whether its agent gave it up, or it ends again and again."""
    if replica.state is ReplicaState.FAILED:
        return True
    return replica.state is ReplicaState.BACKOFF and replica.crashes >= CRASH_LOOP


def _cause(replica: Replica, now: datetime, limit: timedelta) -> str:
    error = replica.status.last_error or f"exit code {replica.status.exit_code}"
    if replica.state is ReplicaState.FAILED:
        return f"{replica.id} failed: {error}"
    if replica.state is ReplicaState.BACKOFF and replica.crashes >= CRASH_LOOP:
        return f"{replica.id} ended {replica.crashes} times on {replica.node}: {error}"
    if replica.evidence is Evidence.WEDGED:
        return f"{replica.id} answers, but nothing comes out of its engine"
    if replica.state is ReplicaState.STARTING and now - replica.since >= limit:
        return f"{replica.id} was not ready after {limit.total_seconds():g} s"
    return ""


def _limit(deployment: Deployment, ready: timedelta) -> timedelta:
    spec = deployment.spec
    said = spec.rollout.update.ready_deadline_ms or spec.usual_start_limit_ms
    return timedelta(milliseconds=said) if said else ready
