"""What a deployment's status says: counts, and one line why it is not as wanted."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from penstock.control.state.cluster import ClusterView
from penstock.control.state.deployment import Deployment
from penstock.control.state.reconcile import LIVE, is_current, serves
from penstock.control.state.replica import NodeState, Replica, ReplicaState


class DeploymentPhase(StrEnum):
    """A deployment in one word."""

    READY = "ready"  # everything as wanted
    UPDATING = "updating"  # serves; a new template is being rolled out
    DEGRADED = "degraded"  # serves with fewer replicas than wanted
    STARTING = "starting"  # does not serve yet
    FAILED = "failed"  # does not serve, and its replicas ended with an error
    STOPPED = "stopped"  # wants no replicas, has none


@dataclass(frozen=True, slots=True)
class DeploymentStatus:
    """Actual against wanted; `message` is empty where there is nothing to say."""

    phase: DeploymentPhase
    wanted: int
    ready: int  # replicas that serve, of any template
    updated: int  # of these, those that run the present template
    message: str


def status_of(view: ClusterView, deployment: Deployment) -> DeploymentStatus:
    """The status of one deployment as the view stands."""
    live = [r for r in view.replicas_for(deployment) if r.state in LIVE]
    serving = [r for r in live if serves(r)]
    updated = [r for r in serving if is_current(deployment, r)]
    wanted = deployment.spec.replicas
    done = len(updated) == wanted == len(live)
    message = "" if done else _message(view, deployment, live)
    phase = _phase(wanted, len(serving), live, done=done)
    return DeploymentStatus(phase, wanted, len(serving), len(updated), message)


def _phase(wanted: int, ready: int, live: list[Replica], *, done: bool) -> DeploymentPhase:
    if done:
        return DeploymentPhase.READY if wanted else DeploymentPhase.STOPPED
    if ready >= wanted:
        return DeploymentPhase.UPDATING
    if ready:
        return DeploymentPhase.DEGRADED
    failing = any(r.state in (ReplicaState.FAILED, ReplicaState.BACKOFF) for r in live)
    return DeploymentPhase.FAILED if failing else DeploymentPhase.STARTING


def _message(view: ClusterView, deployment: Deployment, live: list[Replica]) -> str:
    newest_first = sorted(live, key=lambda r: r.generation, reverse=True)
    for replica in newest_first:
        if replica.state in (ReplicaState.FAILED, ReplicaState.BACKOFF):
            error = replica.status.last_error or f"exit code {replica.status.exit_code}"
            return f"{replica.id} {replica.state}: {error}"
    if deployment.trouble:
        return deployment.trouble
    if not any(node.state is NodeState.READY for node in view.nodes.values()):
        return "no node is ready: start one with `penstock node`"
    missing = deployment.spec.replicas - sum(map(serves, live))
    return f"waiting for {missing} of {deployment.spec.replicas} replicas" if missing > 0 else ""
