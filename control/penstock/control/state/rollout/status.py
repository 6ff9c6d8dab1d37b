"""What a deployment's status says: counts, and one line why it is not as wanted."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from penstock.control.state.cluster import ClusterView
from penstock.control.state.command import ADVICE
from penstock.control.state.fleet.replica import LIVE, Evidence, Replica, ReplicaState
from penstock.control.state.fleet.serving import is_current, is_judged, serving
from penstock.control.state.rollout.capacity import Capacity, devices_needed, takes_more
from penstock.control.state.rollout.deployment import Deployment
from penstock.control.state.rollout.engine_args import runs_model_code
from penstock.control.state.rollout.revision import RevisionState


class DeploymentPhase(StrEnum):
    """A deployment in one word."""

    READY = "ready"  # everything as wanted
    UPDATING = "updating"  # serves; a new template is being rolled out
    DEGRADED = "degraded"  # serves with fewer replicas than wanted
    STARTING = "starting"  # does not serve yet
    FAILED = "failed"  # does not serve, and its replicas ended with an error
    STOPPED = "stopped"  # wants no replicas, has none


@dataclass(frozen=True, slots=True)
class Rollout:
    """How far the current revision has come."""

    revision: int
    state: RevisionState
    ready: int  # replicas of it that serve
    old: int  # live replicas of others
    undoes: int  # the revision that failed, whose place it took by itself; 0: none
    paused: bool
    cause: str  # why it, or the one whose place it took by itself, does not get on; empty: it does
    failed_replica: str  # that either failed by; empty: none did


@dataclass(frozen=True, slots=True)
class DeploymentStatus:
    """Actual against wanted; `message` is empty where there is nothing to say."""

    phase: DeploymentPhase
    wanted: int
    ready: int  # replicas that serve, of any template but one that is judged
    updated: int  # of these, those that run the present template
    message: str
    rollout: Rollout


def status_of(view: ClusterView, deployment: Deployment) -> DeploymentStatus:
    """The status of one deployment as the view stands."""
    live = [r for r in view.replicas_for(deployment) if r.state in LIVE]
    all_that_serve = [r for r in serving(view, deployment) if _runs(view, r)]
    serves = [r for r in all_that_serve if not is_judged(deployment, r)]
    updated = [r for r in serves if is_current(deployment, r)]
    wanted = deployment.spec.replicas
    done = len(updated) == wanted == len(live) and deployment.target is deployment.revision
    message = "" if done else _message(view, deployment, live, len(serves))
    phase = _phase(wanted, len(serves), live, done=done)
    rollout = _rollout(deployment, live, all_that_serve)
    return DeploymentStatus(phase, wanted, len(serves), len(updated), message, rollout)


def _rollout(deployment: Deployment, live: list[Replica], serves: Iterable[Replica]) -> Rollout:
    now = deployment.revision
    begun = deployment.restart_generation
    of_it = {
        r.id for r in live if r.template_digest == now.template_digest and r.generation >= begun
    }
    undone = next((r for r in deployment.revisions if r.number == now.undoes), now)
    return Rollout(
        now.number,
        now.state,
        ready=sum(r.id in of_it for r in serves),
        old=len(live) - len(of_it),
        undoes=now.undoes,
        paused=deployment.paused,
        cause=now.cause or deployment.trouble or undone.cause,
        failed_replica=now.failed_replica or undone.failed_replica,
    )


def _runs(view: ClusterView, replica: Replica) -> bool:
    """Whether there is any sign of it: a head that holds still may remember what is long over."""
    if view.held:
        return replica.evidence in (Evidence.ANSWERS, Evidence.WEDGED)
    return replica.evidence is not Evidence.GONE


def _phase(wanted: int, ready: int, live: list[Replica], *, done: bool) -> DeploymentPhase:
    if done:
        return DeploymentPhase.READY if wanted else DeploymentPhase.STOPPED
    if ready >= wanted:
        return DeploymentPhase.UPDATING
    if ready:
        return DeploymentPhase.DEGRADED
    failing = any(r.state in (ReplicaState.FAILED, ReplicaState.BACKOFF) for r in live)
    return DeploymentPhase.FAILED if failing else DeploymentPhase.STARTING


def _message(view: ClusterView, deployment: Deployment, live: list[Replica], ready: int) -> str:
    if view.held:
        return f"this head holds still: {view.held.removesuffix(f': {ADVICE}')}"
    if deployment.revision.state is RevisionState.FAILED:
        return (
            f"revision {deployment.revision.number} failed, revision {deployment.target.number}"
            f" goes on: {deployment.revision.cause}"
        )
    if deployment.judged and (told := _judged(view, deployment)):
        return told
    if deployment.paused and deployment.target is not deployment.revision:
        return (
            f"the rollout of revision {deployment.revision.number} is paused:"
            f" `penstock rollout resume {deployment.spec.name}` goes on"
        )
    newest_first = sorted(live, key=lambda r: r.generation, reverse=True)
    for replica in newest_first:
        if replica.state in (ReplicaState.FAILED, ReplicaState.BACKOFF):
            error = replica.status.last_error or f"exit code {replica.status.exit_code}"
            again = f" (attempt {replica.tries + 1})" if replica.tries else ""
            return f"{replica.id} {replica.state}{again}: {error}"
    if deployment.trouble:
        return deployment.trouble
    if not any(map(takes_more, view.nodes.values())):
        return no_node(view)
    if stuck := _without_surge(view, deployment, live):
        return stuck
    missing = deployment.spec.replicas - ready
    if len(live) < deployment.spec.replicas and Capacity(view).find(deployment) is None:
        return f"waiting for room: {needs(view, deployment)}"
    return f"waiting for {missing} of {deployment.spec.replicas} replicas" if missing > 0 else ""


def _judged(view: ClusterView, deployment: Deployment) -> str:
    """Who judges its newest revision; empty: nobody any more."""
    name, number = deployment.spec.name, deployment.revision.number
    canary = view.canaries.judging(str(name), number)
    if canary is None:
        return ""
    return (
        f"revision {number} is judged beside revision {deployment.target.number}:"
        f" `penstock canary status {canary.spec.name}` tells how far it is"
    )


def _without_surge(view: ClusterView, deployment: Deployment, live: list[Replica]) -> str:
    """Why no replica of the current revision is begun, where that is for want of accelerators."""
    current = [r for r in live if is_current(deployment, r)]
    allowed = deployment.spec.rollout.update.max_unavailable
    if len(current) == len(live) or allowed or len(live) < deployment.spec.replicas:
        return ""
    if any(r.state is not ReplicaState.READY for r in current) or Capacity(view).find(deployment):
        return ""
    return (
        f"revision {deployment.revision.number} waits: {needs(view, deployment)} for one more"
        " replica; update.max_unavailable=1 lets one be taken down first"
    )


def no_node(view: ClusterView) -> str:
    """That no node takes replicas, and what to do."""
    drained = sorted(n.id for n in view.nodes.values() if n.draining)
    if not drained:
        return "no node is ready: start one with `penstock node`"
    undo = f"`penstock drain {drained[0]} --undo` lets it have replicas again"
    return f"no node takes replicas: {', '.join(drained)} drained; {undo}"


def needs(view: ClusterView, deployment: Deployment) -> str:
    """What no node has that a replica takes."""
    template = deployment.target.template
    nodes = [n for n in view.nodes.values() if takes_more(n)]
    if runs_model_code(template) and not any(n.facts.allows_model_code for n in nodes):
        return "no node takes code of a model: start one with --allow-model-code"
    devices = devices_needed(template)
    return f"no node has {devices} free accelerator{'s' if devices > 1 else ''}"
