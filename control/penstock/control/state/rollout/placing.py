"""What the reconcile loop's decisions, and the agents' answers to them, change in the view."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import datetime

from penstock.control.declared.fields import drawn
from penstock.control.state.canary.canary import CanaryState, ended
from penstock.control.state.cluster import ClusterView
from penstock.control.state.fleet.replica import (
    LIVE,
    NodeId,
    Replica,
    ReplicaId,
    ReplicaState,
    ReplicaStatus,
)
from penstock.control.state.rollout.actions import (
    Abandon,
    Confirm,
    Decision,
    Drain,
    GiveUp,
    LetOn,
    Place,
    Settle,
    Wake,
)
from penstock.control.state.rollout.deployment import (
    Deployment,
    DeploymentSpec,
    after_failure,
    changed,
)
from penstock.control.state.rollout.revision import NOBODY, Cause, Origin, let_on, served


def applied(
    view: ClusterView, decisions: Iterable[Decision], new_id: Callable[[], str], now: datetime
) -> ClusterView:
    """The view as a plan that was made of this very view wants it."""
    for decision in decisions:
        match decision:
            case Place(deployment):
                view = placed(view, decision, ReplicaId(f"{deployment}-{new_id()}"), now)
            case Wake():
                view = woken(view, decision, now)
            case Drain():
                view = draining(view, decision, now)
            case Abandon():
                view = abandoned(view, decision, now)
            case Settle():
                view = settled(view, decision)
            case Confirm():
                view = confirmed(view, decision)
            case GiveUp():
                view = given_up(view, decision, now)
            case LetOn():
                view = with_let_on(view, decision)
    return view


def placed(view: ClusterView, action: Place, replica_id: ReplicaId, now: datetime) -> ClusterView:
    """A pending replica of the deployment as it is now."""
    deployment = view.deployments[action.deployment]
    target = deployment.made_of(action.digest)
    status = ReplicaStatus(
        replica_id,
        action.deployment,
        deployment.uid,
        target.template_digest,
        target.generation,
        ReplicaState.PENDING,
        devices=action.devices,
    )
    replica = replica_of(status, action.node, now)
    return view.with_replica(replace(replica, tries=deployment.tries))


def woken(view: ClusterView, action: Wake, now: datetime) -> ClusterView:
    """The replica is given to its node once more, on the devices that it has."""
    replica = view.replicas.get(action.replica_id)
    deployment = replica and view.owner(replica)
    if not replica or not deployment or replica.state is not ReplicaState.ASLEEP:
        return view
    replica = replace(replica.moved(ReplicaState.PENDING, now), tries=deployment.tries)
    return view.with_replica(replica)


def replica_of(status: ReplicaStatus, node: NodeId, now: datetime) -> Replica:
    """A replica that is exactly what this status says."""
    own = {"id": status.replica_id, "status": status, "node": node}
    return drawn(Replica, status, **own, since=now, assigned_at=now)


def draining(view: ClusterView, action: Drain, now: datetime) -> ClusterView:
    """The replica gets no new requests from now on; its deployment remembers any trouble."""
    replica = view.replicas.get(action.replica_id)
    if replica is None or replica.state not in LIVE | {ReplicaState.ASLEEP}:
        return view
    why = action.trouble or action.reason
    drained = replica.moved(ReplicaState.DRAINING, now)
    view = view.with_replica(replace(drained, leaving=why, to_sleep=action.to_sleep))
    return _with_trouble(view, replica, action.trouble)


def abandoned(view: ClusterView, action: Abandon, now: datetime) -> ClusterView:
    """The replica counts no longer. It stays shown for a while: where it was to run, the next one
    is not put."""
    replica = view.replicas.get(action.replica_id)
    if replica is None or replica.state is not ReplicaState.PENDING:
        return view
    lost = replace(replica.moved(ReplicaState.LOST, now), leaving=action.trouble)
    return _with_trouble(view.with_replica(lost), replica, action.trouble)


def specified(
    view: ClusterView,
    deployment: Deployment,
    spec: DeploymentSpec,
    now: datetime,
    origin: Origin = NOBODY,
) -> ClusterView:
    """The view after an operator has said what is wanted."""
    return tried_anew(view, changed(deployment, spec, now, origin))


def tried_anew(view: ClusterView, deployment: Deployment) -> ClusterView:
    """The view with a deployment as an operator wants it, who may have mended by now what was in
    the way: what has failed is tried as if for the first time."""
    deployment = replace(deployment, tries=0)
    for replica in view.replicas_for(deployment):
        if replica.tries and replica.state is not ReplicaState.READY:
            view = view.with_replica(replace(replica, tries=0))
    return view.with_deployment(deployment)


def settled(view: ClusterView, action: Settle) -> ClusterView:
    """The deployment's trouble is over."""
    deployment = view.deployments[action.deployment]
    return view.with_deployment(replace(deployment, trouble="", tries=0))


def confirmed(view: ClusterView, action: Confirm) -> ClusterView:
    """The deployment's revision has served."""
    deployment = view.deployments[action.deployment]
    return view.with_deployment(replace(deployment, revisions=served(deployment.revisions)))


def given_up(view: ClusterView, action: GiveUp, now: datetime) -> ClusterView:
    """The deployment's revision has failed, and the canary that judges it has ended; where its spec
    says so, the last that served takes its place."""
    deployment = view.deployments[action.deployment]
    name, number = str(action.deployment), deployment.revision.number
    if canary := view.canaries.judging(name, number):
        why = f"revision {number} failed: {action.cause.text}"
        over = ended(canary, CanaryState.ROLLED_BACK, why, now)
        view = replace(view, canaries=view.canaries.having(over))
    return with_failure(view, deployment, action.cause, now)


def with_failure(
    view: ClusterView, deployment: Deployment, cause: Cause, now: datetime
) -> ClusterView:
    """The view in which the deployment's revision has failed. Replicas of one that was judged take
    nothing new from this moment on: what it was judged against has all its own."""
    judged = deployment.judged
    view = view.with_deployment(after_failure(deployment, cause, now))
    if judged is None:
        return view
    why = f"revision {judged.number} failed: {cause.text}"
    return with_all_draining(view, deployment, judged.template_digest, why, now)


def with_all_draining(
    view: ClusterView, deployment: Deployment, digest: str, why: str, now: datetime
) -> ClusterView:
    """The view in which all the deployment's replicas of this template take nothing new."""
    for replica in view.replicas_for(deployment):
        if replica.template_digest == digest:
            view = draining(view, Drain(replica.id, why), now)
    return view


def with_let_on(view: ClusterView, action: LetOn) -> ClusterView:
    """The deployment's revision takes the place of the one that it was judged against."""
    deployment = view.deployments[action.deployment]
    if deployment.judged is None:
        return view
    return view.with_deployment(replace(deployment, revisions=let_on(deployment.revisions)))


def answered(view: ClusterView, status: ReplicaStatus, now: datetime) -> ClusterView:
    """An agent answered a start; a heartbeat may have said more in the meantime."""
    replica = view.replicas.get(status.replica_id)
    if replica is None or replica.state is not ReplicaState.PENDING:
        return view
    if status.state is ReplicaState.PENDING:
        return view
    if status.state is ReplicaState.STOPPED:
        return view.without_replica(replica.id)
    return view.with_replica(replace(replica.moved(status.state_if_unasked, now), status=status))


def stop_taken(view: ClusterView, replica_id: ReplicaId) -> ClusterView:
    """An agent took the order to stop a replica: that it drains is from now on our doing."""
    replica = view.replicas.get(replica_id)
    if replica is None or replica.state is not ReplicaState.DRAINING:
        return view
    status = replace(replica.status, state=ReplicaState.DRAINING)
    return view.with_replica(replace(replica, status=status, stop_accepted=True))


def _with_trouble(view: ClusterView, replica: Replica, trouble: str) -> ClusterView:
    deployment = view.owner(replica)
    if deployment is None or not trouble:
        return view
    # Those that were placed together fail together: that is one attempt.
    tries = max(deployment.tries, replica.tries + 1)
    return view.with_deployment(replace(deployment, trouble=trouble, tries=tries))
