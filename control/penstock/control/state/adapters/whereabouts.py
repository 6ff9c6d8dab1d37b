"""Where an adapter version is: what replicas told, beside what they are to keep. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.adapters.version import AdapterVersion
from penstock.control.state.adapters.residence import KeepOrder, residence_of
from penstock.control.state.cluster import ClusterView
from penstock.control.state.fleet.replica import LIVE, Replica


@dataclass(frozen=True, slots=True)
class Whereabouts:
    """One version on one replica."""

    replica: str
    deployment: str
    node: str
    state: str  # loaded, failed, wanted (on its way, or waiting for room), elsewhere
    kept: bool
    pinned: bool
    reason: str = ""


def whereabouts(view: ClusterView, version: AdapterVersion) -> list[Whereabouts]:
    """The version on every replica of its family's deployments that lives, by replica."""
    found = []
    for name, deployment in sorted(view.deployments.items()):
        if deployment.target.template.family != version.manifest.family:
            continue
        orders = residence_of(view, deployment, {}).orders
        for replica in view.replicas_for(deployment):
            if replica.state not in LIVE:
                continue
            order = orders.get(replica.id, KeepOrder())
            found.append(_on(replica, str(version.ref), name, order))
    return found


def _on(replica: Replica, ref: str, deployment: str, order: KeepOrder) -> Whereabouts:
    kept = next((each for each in order.kept if each.name == ref), None)
    failure = next((each for each in replica.status.failed_adapters if each.name == ref), None)
    if ref in replica.status.adapters:
        state = "loaded"
    elif failure is not None:
        state = "failed"
    else:
        state = "wanted" if kept else "elsewhere"
    return Whereabouts(
        replica=replica.id,
        deployment=deployment,
        node=replica.node,
        state=state,
        kept=kept is not None,
        pinned=kept is not None and kept.pinned,
        reason=failure.reason if failure is not None and state == "failed" else "",
    )
