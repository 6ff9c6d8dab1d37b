"""What happened between two views, as events. Pure.

What both views say is no news: a head that starts begins with the view that its store remembers.
What no store remembers, such as whether a node was heard, is told, and known to who stores it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from typing import TypeVar

from penstock.adapters.adapter import AdapterRef
from penstock.adapters.alias import Alias
from penstock.adapters.version import AdapterVersion, VersionState
from penstock.control.state.canary.happened import of_canary
from penstock.control.state.cluster import ClusterView, Gateway, GatewayState
from penstock.control.state.events import LONGEST_TEXT, Event, EventKind, Reason
from penstock.control.state.fleet.replica import (
    Node,
    NodeId,
    NodeIntent,
    NodeState,
    ReplicaState,
)
from penstock.control.state.problems import shortened
from penstock.control.state.providers.secret_texts import looks_secret
from penstock.control.state.rollout.happened import of_deployment, of_replica
from penstock.control.state.routing.program_reports import (
    ProgramChange,
    program_changes,
    signs,
)
from penstock.control.state.routing.suspects import Suspect
from penstock.control.state.shadow.shadows import Shadow

FINGERPRINT = 12  # digits that are shown of one, and that are enough to name it
CONNECTED = frozenset({GatewayState.READY, GatewayState.REMOTE})
STOPPED = frozenset({GatewayState.STOPPED, GatewayState.SILENT, None})
AWAY = frozenset({GatewayState.UNRESPONSIVE, GatewayState.BACKOFF, GatewayState.SILENT})
STEPS = {
    VersionState.CANARY: Reason.ADAPTER_CANARY,
    VersionState.LIVE: Reason.ADAPTER_LIVE,
    VersionState.RETIRED: Reason.ADAPTER_RETIRED,
}

Told = tuple[Reason, str]
_LOST = ReplicaState.LOST
_Name = TypeVar("_Name")
_Value = TypeVar("_Value")


def happened(before: ClusterView, after: ClusterView, at: datetime) -> Iterator[Event]:
    """What an operator is told of, causes before what comes of them."""
    for event in _all(before, after, at):
        yield replace(event, text=_sentence(event.text))


def what_is_told(view: ClusterView) -> tuple[object, ...]:
    """What of a view events follow from."""
    return (
        view.deployments,
        view.nodes,
        view.replicas,
        tuple((gateway.id, gateway.state) for gateway in view.gateways.values()),
        view.adapters.versions,
        view.adapters.aliases,
        view.spending.used_up,
        view.suspects,
        view.shadows.named,
        view.shadows.compared.verdicts,
        view.canaries.named,
        signs(view),
    )


def _all(before: ClusterView, after: ClusterView, at: datetime) -> Iterator[Event]:
    for node in _changed(before.nodes, after.nodes):
        yield from _of(EventKind.NODE, node[0], _node(*node), at)
    for gateway in _changed(before.gateways, after.gateways):
        yield from _of(EventKind.GATEWAY, gateway[0], _gateway(*gateway), at)
    for deployment in _changed(before.deployments, after.deployments):
        yield from of_deployment(*deployment, at)
    for replica in _changed(before.replicas, after.replicas):
        yield from of_replica(after, *replica, at)
    for name in _drained(before, after):
        empty = (Reason.NODE_DRAINED, f"nothing runs on node {name} any more")
        yield from _of(EventKind.NODE, name, [empty], at)
    for version in _changed(before.adapters.versions, after.adapters.versions):
        yield from _of(EventKind.ADAPTER, str(version[0]), _version(*version), at)
    for alias in _changed(before.adapters.aliases, after.adapters.aliases):
        of = alias[0].partition(":")[0]
        yield from _of(EventKind.ALIAS, alias[0], _alias(*alias), at, of)
    for name in sorted(after.spending.used_up - before.spending.used_up):
        text = f"{name} has had its budget of today: it takes no more requests until midnight UTC"
        yield from _of(EventKind.BUDGET, name, [(Reason.BUDGET_USED_UP, text)], at, name)
    for change in program_changes(before, after):
        name = change.deployment
        yield from _of(EventKind.DEPLOYMENT, name, _program(change), at, name)
    for _, was, now in _changed(before.suspects, after.suspects):
        if suspect := now or was:
            name, said = suspect.fingerprint.hex()[:FINGERPRINT], _suspect(was, now)
            yield from _of(EventKind.QUARANTINE, name, said, at, suspect.deployment)
    for name, shadow in after.shadows.named.items():
        yield from _of(EventKind.SHADOW, name, _shadow(before, after, shadow), at)
    for _, earlier, canary in _changed(before.canaries.named, after.canaries.named):
        yield from of_canary(earlier, canary, at) if canary else ()


def _of(
    kind: EventKind, name: str, said: Iterable[Told], at: datetime, deployment: str = ""
) -> Iterator[Event]:
    return (Event(kind, name, reason, text, at, deployment) for reason, text in said)


def _changed(
    old: Mapping[_Name, _Value], new: Mapping[_Name, _Value]
) -> Iterator[tuple[_Name, _Value | None, _Value | None]]:
    """What is not the same in both, those that are gone first."""
    if old is new:
        return
    for name, value in old.items():
        if name not in new:
            yield name, value, None
    for name, value in new.items():
        before = old.get(name)
        if before is not value:
            yield name, before, value


def _node(name: str, was: Node | None, now: Node | None) -> Iterator[Told]:
    if now is None:
        yield Reason.NODE_FORGOTTEN, f"node {name} is known no longer"
        return
    if was is None:
        yield Reason.NODE_JOINED, f"node {name} is there, at {now.facts.agent_address}"
    elif now.state is not was.state:
        yield from _node_state(name, now.state)
    if _leaves(now) and not (was and _leaves(was)):
        why = "an operator drains it" if now.draining else "its machine goes"
        yield Reason.NODE_DRAINING, f"node {name} gets no more replicas: {why}"


def _node_state(name: str, now: NodeState) -> Iterator[Told]:
    if now is NodeState.SILENT:
        text = f"node {name} is not heard: what runs there is left alone"
        yield Reason.NODE_SILENT, text
    elif now is NodeState.LOST:
        text = f"node {name} is lost: replicas there that do not answer are replaced"
        yield Reason.NODE_LOST, text
    elif now is NodeState.READY:
        yield Reason.NODE_BACK, f"node {name} is heard again"


def _leaves(node: Node) -> bool:
    return node.draining or node.intent is NodeIntent.LEAVING


def _drained(before: ClusterView, after: ClusterView) -> Iterator[str]:
    """Nodes that are to be empty, and have come to be so."""
    for name, node in after.nodes.items():
        known = before.nodes.get(name)
        was_empty = known and _leaves(known) and not _runs_on(before, name)
        if _leaves(node) and not was_empty and not _runs_on(after, name):
            yield name


def _runs_on(view: ClusterView, node: NodeId) -> bool:
    return any(r.node == node and r.state is not _LOST for r in view.replicas.values())


def _gateway(name: str, was: Gateway | None, now: Gateway | None) -> Iterator[Told]:
    state, before = now.state if now else None, was.state if was else None
    if state in CONNECTED and before not in CONNECTED:
        yield Reason.GATEWAY_CONNECTED, f"gateway {name} is connected"
    elif now and state in AWAY and state is not before:
        why = f": {now.last_error}" if now.last_error else ""
        yield Reason.GATEWAY_LOST, f"gateway {name} is {now.state}{why}"
    elif state is GatewayState.STOPPED or (state is None and before not in STOPPED):
        yield Reason.GATEWAY_STOPPED, f"gateway {name} has ended"


def _version(
    ref: AdapterRef, was: AdapterVersion | None, now: AdapterVersion | None
) -> Iterator[Told]:
    if now is None:
        yield Reason.ADAPTER_DELETED, f"{ref} is deleted"
        return
    if was is None:
        said = now.manifest
        yield Reason.ADAPTER_REGISTERED, f"{ref} is registered by {said.registered_by}"
    if now.state in STEPS and not (was and was.state is now.state):
        yield STEPS[now.state], f"{ref} is {now.state}"


def _alias(name: str, was: Alias | None, now: Alias | None) -> Iterator[Told]:
    if now is None:
        yield Reason.ALIAS_DELETED, f"{name} is deleted"
    elif was is None:
        yield Reason.ALIAS_SET, f"{name} names {now.target}, by {now.moves[-1].by}"
    elif was.target != now.target:
        move = now.moves[-1]
        back = "back " if move.undoes else ""
        text = f"{name} moved {back}from {was.target} to {now.target}, by {move.by}"
        yield Reason.ALIAS_MOVED, text


def _program(change: ProgramChange) -> Iterator[Told]:
    name, gateway = change.deployment, change.gateway
    for failure in change.new_failures:
        text = f"the program of {name} failed at gateway {gateway}, as it did not before: {failure}"
        yield Reason.PROGRAM_FAILED, text
    was, now = change.was.unavailable, change.now.unavailable
    if now and not was:
        text = f"gateway {gateway} asks the program of {name} no more: {now} ({change.told})"
        yield Reason.PROGRAM_NOT_ASKED, text
    elif was and not now and change.now.asked:
        text = f"gateway {gateway} asks the program of {name} again ({change.told})"
        yield Reason.PROGRAM_ASKED_AGAIN, text


def _suspect(was: Suspect | None, now: Suspect | None) -> Iterator[Told]:
    """No word of the request itself."""
    before, after = bool(was and was.is_quarantined), bool(now and now.is_quarantined)
    if now and after and not before:
        text = f"a request to {now.path} is refused: {len(now.deaths)} engines died with it aboard"
        yield Reason.REQUEST_QUARANTINED, text
    elif was and before and not after:
        yield Reason.REQUEST_RELEASED, f"a request to {was.path} is taken again"


def _shadow(before: ClusterView, after: ClusterView, now: Shadow) -> Iterator[Told]:
    name, was = now.spec.name, before.shadows.named.get(now.spec.name)
    if now.ended and not (was and was.ended):
        yield Reason.SHADOW_ENDED, f"shadow {name} has ended: {now.ended}"
    said, says = (view.shadows.compared.verdicts.get(now.uid) for view in (before, after))
    if said and says and said != says:
        ends = f"{now.spec.candidate} against {now.spec.primary}"
        yield Reason.VERDICT_CHANGED, f"shadow {name}, {ends}: {says}, no longer {said}"


def _sentence(text: str) -> str:
    if looks_secret(text):
        return "what was said of it looks like a secret, and is not kept"
    return shortened(text, LONGEST_TEXT)
