"""Whether a deployment can answer, and if not, why and when: what clients who wait are told."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from penstock.adapters.shown import without_places
from penstock.control.state.cluster import ClusterView
from penstock.control.state.fleet.replica import LIVE, Replica, ReplicaState
from penstock.control.state.fleet.serving import is_current, is_judged, serving
from penstock.control.state.rollout.deployment import Deployment
from penstock.control.state.rollout.failing import is_hopeless


class Availability(StrEnum):
    """routes.proto, `Availability`."""

    SERVING = "serving"
    LOADING = "loading"
    SCALED_TO_ZERO = "scaled to zero"
    FAILED = "failed"  # none will come, or what ended again and again is tried once more


@dataclass(frozen=True, slots=True)
class Prospect:
    """What a client may expect of a deployment."""

    availability: Availability
    detail: str = ""  # for a person; empty: it serves
    expected_ready_at_ms: int = 0  # milliseconds since 1970; 0: not known


def prospect_of(view: ClusterView, deployment: Deployment) -> Prospect:
    """Follows from the view alone, so that waiting makes no new snapshots."""
    if any(not is_judged(deployment, r) for r in serving(view, deployment)):
        return Prospect(Availability.SERVING)
    if not deployment.spec.replicas:
        return Prospect(Availability.SCALED_TO_ZERO, "it is scaled to 0 replicas")
    current = [
        r
        for r in view.replicas_for(deployment)
        if r.state in LIVE and is_current(deployment, r) and not is_judged(deployment, r)
    ]
    if current and all(is_hopeless(r) for r in current):
        error = current[0].status.last_error or f"exit code {current[0].status.exit_code}"
        told = without_places(error)  # whoever runs it finds the whole in `penstock status`
        detail = f"{current[0].id} {current[0].state}: {told}"
        return Prospect(Availability.FAILED, detail, _next_try_ms(current, deployment.load_ms))
    if not view.nodes:
        return Prospect(Availability.FAILED, "no node is there to run it")
    moments = [_ready_at_ms(r, deployment.load_ms) for r in current if not is_hopeless(r)]
    detail = without_places(deployment.trouble) or "its replicas are loading"
    return Prospect(Availability.LOADING, detail, min((m for m in moments if m), default=0))


def _next_try_ms(replicas: Iterable[Replica], load_ms: int) -> int:
    """When the first of those that their agents start again by themselves may be ready."""
    resting = [r for r in replicas if r.state is ReplicaState.BACKOFF and r.status.next_start_ms]
    return min((r.status.next_start_ms + load_ms for r in resting), default=0)


def _ready_at_ms(replica: Replica, load_ms: int) -> int:
    """0 where nothing is known of how long it loads."""
    began = {
        ReplicaState.PENDING: _milliseconds(replica.since),
        ReplicaState.STARTING: replica.status.started_at_ms,
        ReplicaState.BACKOFF: replica.status.next_start_ms,
    }.get(replica.state, 0)
    return began + load_ms if began and load_ms else 0


def _milliseconds(moment: datetime) -> int:
    return int(moment.timestamp() * 1000)
