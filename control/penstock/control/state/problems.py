"""What an operator has to know before anything else: one list of what is wrong now.

Pure: status, metrics and exit codes show the same list.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from penstock.control.state.canary.canary import Canary, CanaryState
from penstock.control.state.cluster import ClusterView, GatewayState
from penstock.control.state.fleet.liveness import Liveness
from penstock.control.state.fleet.replica import LIVE, Node, NodeIntent, NodeState, ReplicaState
from penstock.control.state.fleet.serving import is_current
from penstock.control.state.rollout.deployment import Deployment
from penstock.control.state.rollout.status import DeploymentPhase, status_of
from penstock.control.state.routing.program import Texts
from penstock.control.state.routing.program_reports import program_trouble
from penstock.control.state.shadow.condition import missing

# Heartbeats come each second: of a node that is not heard for longer, all that is shown is old.
UNOBSERVED_AFTER = timedelta(seconds=3)
LONGEST_TEXT = 300  # characters of what an engine says
# A canary that is held so much longer than its step takes is somebody's to look at.
HELD_LONG = timedelta(hours=1)
ROLLED_BACK_FOR = timedelta(days=1)  # it is told, unless it is deleted before


class ProblemKind(StrEnum):
    """What is wrong, as a label."""

    TAKING_OVER = "taking_over"
    HOLDS_STILL = "holds_still"
    DATA_DIR = "data_dir"
    STORE = "store"
    ROUTES_WITHHELD = "routes_withheld"
    UNREADABLE = "unreadable"
    REFUSED_PEER = "refused_peer"
    NODE_SILENT = "node_silent"
    NODE_DRAINED = "node_drained"
    ACCELERATOR_LOST = "accelerator_lost"
    GATEWAY = "gateway"
    DEPLOYMENT_FAILED = "deployment_failed"
    UPDATE_FAILED = "update_failed"
    COMPARER = "comparer"
    SHADOW = "shadow"
    PROGRAM = "program"
    CANARY = "canary"
    RESUME = "resume"


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong: with what, and what to do."""

    kind: ProblemKind
    subject: str
    text: str


@dataclass(frozen=True, slots=True)
class HeadHealth:
    """What is wrong with the head itself; empty where nothing is."""

    data_dir: str = ""
    store: str = ""
    routes_withheld: str = ""
    takes_over: bool = False  # it listens to everybody before it goes on


def problems(
    view: ClusterView, live: Liveness, head: HeadHealth, now: datetime, shipped: Texts
) -> tuple[Problem, ...]:
    """All of them, what concerns everything first. `shipped`: router programs, by name."""
    return (
        *_of_head(view, head),
        *(
            Problem(ProblemKind.REFUSED_PEER, who, f"is not let in: {it.why}")
            for who, it in sorted(live.refused.items())
        ),
        *(
            each
            for _, node in sorted(view.nodes.items())
            for each in _of_node(view, live, node, now)
        ),
        *_of_gateways(view),
        *(each for _, it in sorted(view.deployments.items()) for each in _of_deployment(view, it)),
        *_of_resume(view),
        *_of_policies(view),
        *_of_programs(view, live, shipped, now),
        *_of_shadows(view),
        *_of_canaries(view, now),
    )


def shortened(text: str, most: int = LONGEST_TEXT) -> str:
    """What an engine says over several lines, as one that fits a list."""
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most - 1]}…"


def _of_head(view: ClusterView, head: HeadHealth) -> Iterator[Problem]:
    if head.takes_over:
        text = "takes over: it listens to nodes and gateways for some seconds, then goes on"
        yield Problem(ProblemKind.TAKING_OVER, "head", text)
    elif view.held:
        yield Problem(ProblemKind.HOLDS_STILL, "head", f"holds still: {view.held}")
    if head.data_dir:
        yield Problem(ProblemKind.DATA_DIR, "head", head.data_dir)
    if head.store:
        yield Problem(ProblemKind.STORE, "head", head.store)
    if head.routes_withheld:
        text = f"gateways keep older routes: {head.routes_withheld}"
        yield Problem(ProblemKind.ROUTES_WITHHELD, "head", text)
    if view.unreadable:
        text = f"not readable in the store, and skipped: {', '.join(view.unreadable)}"
        yield Problem(ProblemKind.UNREADABLE, "head", text)


def is_unobserved(node: Node, live: Liveness, now: datetime) -> bool:
    """Whether what is shown of a node may be over."""
    if node.state in (NodeState.SILENT, NodeState.LOST):
        return True
    expected = node.intent is NodeIntent.HANDING_OVER
    return not expected and now - live.node_observed_at(node.id, node.since) > UNOBSERVED_AFTER


def _of_node(view: ClusterView, live: Liveness, node: Node, now: datetime) -> Iterator[Problem]:
    mine = [r.id for r in view.replicas.values() if r.node == node.id and r.state in LIVE]
    if is_unobserved(node, live, now) and (mine or node.intent is not NodeIntent.LEAVING):
        seconds = (now - live.node_observed_at(node.id, node.since)).total_seconds()
        shown = f"; as it last said, it runs {', '.join(sorted(mine))}" if mine else ""
        gone = f"if its machine is gone for good: `penstock nodes delete {node.id}`"
        text = f"is not heard for {seconds:.0f} s{shown}; {gone}"
        yield Problem(ProblemKind.NODE_SILENT, f"node {node.id}", text)
    if node.draining:
        left = f", {len(mine)} are still on it" if mine else ""
        undo = f"`penstock drain {node.id} --undo` lets it have some"
        text = f"is drained: it gets no replicas{left}; {undo}"
        yield Problem(ProblemKind.NODE_DRAINED, f"node {node.id}", text)
    if lost := node.facts.resources.lost:
        text = f"its driver reaches these no more, and no replica is placed on them: {lost}"
        yield Problem(ProblemKind.ACCELERATOR_LOST, f"node {node.id}", text)


def _of_gateways(view: ClusterView) -> Iterator[Problem]:
    bad = (GatewayState.UNRESPONSIVE, GatewayState.BACKOFF, GatewayState.SILENT)
    for _, gateway in sorted(view.gateways.items()):
        if gateway.state in bad:
            said = f": {shortened(gateway.last_error)}" if gateway.last_error else ""
            text = f"is {gateway.state}{said}"
            yield Problem(ProblemKind.GATEWAY, f"gateway {gateway.id}", text)
        elif gateway.state is GatewayState.READY and gateway.last_error:
            text = shortened(gateway.last_error)
            yield Problem(ProblemKind.GATEWAY, f"gateway {gateway.id}", text)


def _of_shadows(view: ClusterView) -> Iterator[Problem]:
    if trouble := view.shadows.compared.trouble:
        text = shortened(f"{trouble}; until it runs, gateways drop what shadows were answered")
        yield Problem(ProblemKind.COMPARER, "comparer", text)
    for name, shadow in sorted(view.shadows.named.items()):
        if not (shadow.paused or shadow.ended) and (why := missing(view, shadow)):
            text = (
                f"repeats nothing: {why}; `penstock shadow delete {name}` if it is not to come back"
            )
            yield Problem(ProblemKind.SHADOW, f"shadow {name}", text)


def _of_canaries(view: ClusterView, now: datetime) -> Iterator[Problem]:
    for name, canary in sorted(view.canaries.named.items()):
        if text := _canary_trouble(canary, now):
            yield Problem(ProblemKind.CANARY, f"canary {name}", shortened(text))


def _canary_trouble(canary: Canary, now: datetime) -> str:
    name, beside = canary.spec.name, f"{canary.candidate} beside {canary.stable}"
    ended = canary.state is CanaryState.ROLLED_BACK and canary.ended_at
    if ended and now - ended < ROLLED_BACK_FOR:
        return f"is rolled back, {beside}: {canary.why}; `penstock canary status {name}`"
    if canary.state is CanaryState.HELD:
        since = canary.passed[-1].at if canary.passed else canary.created_at
        hours = (now - since - timedelta(seconds=canary.now.min_seconds)) / HELD_LONG
        if hours >= 1:
            share = f"{canary.permille / 10:g} %"
            return f"has been held at {share} for {hours:.0f} h, {beside}: {canary.why}"
    return ""


def _of_resume(view: ClusterView) -> Iterator[Problem]:
    """Replicas that are to go on with others' answers, and whose self-test of that failed."""
    for name, deployment in sorted(view.deployments.items()):
        serves = [r for r in view.replicas_for(deployment) if r.state is ReplicaState.READY]
        failed = [r for r in serves if r.status.resume_test_failed]
        if failed and deployment.spec.limits.resume:
            text = (
                f"{len(failed)} of {len(serves)} replicas go on with no answer that another began:"
                f" the self-test of {failed[0].id} failed: {failed[0].status.no_resume}; if that is"
                f" to stay so: `penstock set {name} resume=off`"
            )
            yield Problem(ProblemKind.RESUME, f"deployment {name}", shortened(text))


def _of_policies(view: ClusterView) -> Iterator[Problem]:
    for it in view.unknown_policies:
        known = view.deployments.get(it.deployment)
        if known and known.generation == it.generation:
            text = (
                f"its selection policy {it.policy!r} is one of a newer Penstock: its requests go by"
                " power_of_two, until that version is back or another policy is set"
            )
            yield Problem(ProblemKind.UNREADABLE, f"deployment {it.deployment}", shortened(text))


def _of_programs(
    view: ClusterView, live: Liveness, shipped: Texts, now: datetime
) -> Iterator[Problem]:
    for name, deployment in sorted(view.deployments.items()):
        if text := program_trouble(view, live, deployment, shipped, now):
            yield Problem(ProblemKind.PROGRAM, f"deployment {name}", shortened(text))


def _of_deployment(view: ClusterView, deployment: Deployment) -> Iterator[Problem]:
    status, name = status_of(view, deployment), f"deployment {deployment.spec.name}"
    if view.held or status.phase in (DeploymentPhase.READY, DeploymentPhase.STOPPED):
        return
    failing = any(
        is_current(deployment, r) and r.state in (ReplicaState.FAILED, ReplicaState.BACKOFF)
        for r in view.replicas_for(deployment)
    )
    text = shortened(status.message)
    if status.phase is DeploymentPhase.FAILED:
        yield Problem(ProblemKind.DEPLOYMENT_FAILED, name, f"does not serve: {text}")
    elif status.ready and (failing or deployment.trouble):
        text = f"serves as before, an update or another replica fails: {text}"
        yield Problem(ProblemKind.UPDATE_FAILED, name, text)
    elif not status.ready and (ended := _ended(view, deployment)):
        yield Problem(ProblemKind.DEPLOYMENT_FAILED, name, f"does not serve: {ended}")


def _ended(view: ClusterView, deployment: Deployment) -> str:
    """What is known of its replicas that start once more; empty: none does."""
    again = [r for r in view.replicas_for(deployment) if r.crashes and is_current(deployment, r)]
    if not again:
        return ""
    last = max(again, key=lambda r: r.crashes)
    why = shortened(last.status.last_error or f"exit code {last.status.exit_code}")
    times = "once" if last.crashes == 1 else f"{last.crashes} times"
    return f"{last.id} starts again, it has ended {times} by now: {why}"
