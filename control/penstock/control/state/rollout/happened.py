"""What happened to a deployment, its revisions and its replicas, as events. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from penstock.control.declared.fields import flat, leaves
from penstock.control.state.cluster import ClusterView
from penstock.control.state.events import Event, EventKind, Reason
from penstock.control.state.fleet.replica import WOKE_WRONG, Replica, ReplicaState
from penstock.control.state.rollout.deployment import Deployment, DeploymentSpec
from penstock.control.state.rollout.failing import CRASH_LOOP
from penstock.control.state.rollout.revision import Revision, RevisionState
from penstock.control.state.rollout.template import Template

Told = tuple[Reason, str]
MAKES = {leaf.name for leaf in leaves(Template)}


def of_deployment(
    name: str, was: Deployment | None, now: Deployment | None, at: datetime
) -> Iterator[Event]:
    """One that changed, came or went; a namesake is another one."""
    if was and now and was.uid != now.uid:
        yield from of_deployment(name, was, None, at)
        was = None
    for reason, text in _spec(was, now):
        yield Event(EventKind.DEPLOYMENT, name, reason, f"{name} {text}", at, name)
    for reason, text in _rollout(was, now) if now else ():
        yield Event(EventKind.ROLLOUT, name, reason, f"{name}: {text}", at, name)


def _spec(was: Deployment | None, now: Deployment | None) -> Iterator[Told]:
    if now is None:
        yield Reason.DEPLOYMENT_DELETED, "is deleted: its replicas drain and stop"
    elif was is None:
        many = now.spec.replicas
        what = f"{many} replica{'s' if many != 1 else ''} of {now.spec.template.model}"
        yield Reason.DEPLOYMENT_CREATED, f"is created, for {what}"
    elif changes := ", ".join(_differences(was.spec, now.spec)):
        yield Reason.DEPLOYMENT_CHANGED, f"is changed (generation {now.generation}): {changes}"


def _rollout(was: Deployment | None, now: Deployment) -> Iterator[Told]:
    before = {each.number: each for each in was.revisions} if was else {}
    for each in now.revisions:
        yield from _revision(before.get(each.number), each, max(before, default=0))
    yield from _forgotten_failure(before, now)
    if was and now.paused and not was.paused:
        yield Reason.ROLLOUT_PAUSED, f"revision {now.revision.number} goes no further"
    again = was and _is_tried_again(before, now.revision)
    if again or (was and was.paused and not now.paused):
        yield Reason.ROLLOUT_RESUMED, f"revision {now.revision.number} goes on"


def _revision(was: Revision | None, now: Revision, newest: int) -> Iterator[Told]:
    is_new = now.number > newest
    if is_new and now.undoes:
        text = f"revision {now.number} takes the place of {now.undoes}: {now.reason}"
        yield Reason.ROLLED_BACK, text
    elif is_new:
        by, why = f" by {now.by}" if now.by else "", f": {now.reason}" if now.reason else ""
        text = f"revision {now.number} of {now.template.model} begins{by}{why}"
        yield Reason.REVISION_STARTED, text
    if (not is_new and was is None) or (was and was.state is now.state):
        return
    if now.state is RevisionState.SERVED:
        yield Reason.REVISION_SERVED, f"revision {now.number} serves"
    elif now.state is RevisionState.FAILED:
        yield Reason.REVISION_FAILED, f"revision {now.number} failed: {now.cause}"


def _forgotten_failure(before: Mapping[int, Revision], now: Deployment) -> Iterator[Told]:
    """That of a revision which failed and is not even kept, as so few are."""
    undone, kept = now.revision.undoes, {each.number for each in now.revisions}
    if undone in before and undone not in kept and now.revision.number not in before:
        yield Reason.REVISION_FAILED, f"revision {undone} failed: {now.revision.reason}"


def _is_tried_again(before: Mapping[int, Revision], now: Revision) -> bool:
    was = before.get(now.number)
    return bool(was and was.state is RevisionState.FAILED and now.is_rolling_out)


def _differences(old: DeploymentSpec, new: DeploymentSpec) -> Iterator[str]:
    """Of all but what replicas are made of, which a revision tells."""
    before, after = flat(old), flat(new)
    for name, value in after.items():
        if name not in MAKES and before[name] != value:
            yield f"{name} {_shown(before[name])} -> {_shown(value)}"


def _shown(value: Any) -> str:
    return "none" if value in (None, "", [], {}) else json.dumps(value)


def of_replica(
    view: ClusterView, name: str, was: Replica | None, now: Replica | None, at: datetime
) -> Iterator[Event]:
    """One that changed, came or went; `view`: as it is now."""
    if now is None:
        if was and was.state is not ReplicaState.LOST:  # that was told
            why = f": {was.status.last_error}" if was.to_sleep and was.status.last_error else ""
            text, stopped = f"{name} has ended{why}", Reason.REPLICA_STOPPED
            yield Event(EventKind.REPLICA, name, stopped, text, at, was.deployment)
        return
    for reason, text in _life(view, was, now):
        yield Event(EventKind.REPLICA, name, reason, f"{name} {text}", at, now.deployment)
    before = was.status.failed_adapters if was else ()
    for each in now.status.failed_adapters:
        if each not in before:
            text, failed = (
                f"{name} could not load {each.name}: {each.reason}",
                Reason.ADAPTER_FAILED,
            )
            yield Event(EventKind.ADAPTER, each.name, failed, text, at, now.deployment)


def _life(view: ClusterView, was: Replica | None, now: Replica) -> Iterator[Told]:
    if was is None:
        yield Reason.REPLICA_STARTED, f"is given to node {now.node}{_made_of(view, now)}"
    ends = now.crashes > (was.crashes if was else 0) and now.state is not ReplicaState.DRAINING
    if ends and now.crashes >= CRASH_LOOP:
        yield Reason.REPLICA_CRASH_LOOPING, f"ends again and again: {_error(now)}"
    elif ends and now.status.exit_code == WOKE_WRONG:
        yield Reason.REPLICA_WOKE_WRONG, f"is ended, and started again: {_error(now)}"
    elif ends:
        yield Reason.REPLICA_ENDED, f"ended by itself, and is started again: {_error(now)}"
    if was and was.state is now.state:
        return
    match now.state:
        case ReplicaState.READY:
            woke = was and now.status.wakes > was.status.wakes
            how = f", woken within {now.status.wake_ms} ms" if woke else _started(now)
            yield Reason.REPLICA_READY, f"is ready on node {now.node}{how}"
        case ReplicaState.ASLEEP:
            yield Reason.REPLICA_ASLEEP, f"sleeps on node {now.node}"
        case ReplicaState.PENDING if was:
            yield Reason.REPLICA_WAKING, f"is woken on node {now.node}"
        case ReplicaState.FAILED:
            yield Reason.REPLICA_FAILED, f"failed: {_error(now)}"
        case ReplicaState.DRAINING:
            end = ", to go to sleep" if now.to_sleep else ""
            why = now.leaving or "no reason is kept"
            yield Reason.REPLICA_DRAINING, f"drains{end}: {why}"
        case ReplicaState.LOST:
            yield Reason.REPLICA_LOST, f"is lost: {now.leaving or 'no reason is kept'}"


def _started(replica: Replica) -> str:
    """How long its start took, and which kind it was, where its agent tells."""
    status, start = replica.status, replica.status.start
    took = (status.ready_at_ms - status.started_at_ms) / 1000
    if not start.kind or took <= 0:
        return ""
    return f", {took:.1f} s after a {start.kind} start" + (start.reason and f" ({start.reason})")


def _made_of(view: ClusterView, replica: Replica) -> str:
    owner = view.owner(replica)
    found = owner and owner.revision_of(replica.template_digest, replica.generation)
    return f", of revision {found.number}" if found else ""


def _error(replica: Replica) -> str:
    """Its engine's own last words."""
    status = replica.status
    return status.last_error or f"exit code {status.exit_code}"
