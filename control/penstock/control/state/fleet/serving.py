"""Which replicas serve: the one definition that routes, plans and status share.

A replica serves when it was made for the deployment, its agent reports it ready and made of what
was ordered, and the head's pings do not speak against it. Pings alone never take the last one: the
head may be what is cut off.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from penstock.control.state.cluster import ClusterView
from penstock.control.state.fleet.replica import Evidence, Replica, ReplicaState
from penstock.control.state.rollout.deployment import Deployment

SOUND = frozenset({Evidence.NONE, Evidence.ANSWERS})


def serving(view: ClusterView, deployment: Deployment) -> tuple[Replica, ...]:
    """The replicas that new requests are sent to, in order of their ids."""
    ready = [
        r
        for r in view.replicas_for(deployment)
        if r.state is ReplicaState.READY and r.status.address and r.is_as_ordered
    ]
    # While a revision is judged, neither its replicas nor the others stand in for each other.
    sound = {is_judged(deployment, r) for r in ready if r.evidence in SOUND}
    return tuple(r for r in ready if r.evidence in SOUND or is_judged(deployment, r) not in sound)


def is_current(deployment: Deployment, replica: Replica) -> bool:
    """Whether the replica is made of what the deployment's are to be made of now, or of what is
    judged beside that."""
    target = deployment.made_of(replica.template_digest)
    return (
        replica.deployment_uid == deployment.uid
        and replica.template_digest == target.template_digest
        and replica.generation >= min(deployment.restart_generation, target.generation)
        and replica.is_as_ordered
    )


def is_judged(deployment: Deployment, replica: Replica) -> bool:
    """Whether the replica is of the revision that a canary judges: no other clients have it."""
    judged = deployment.judged
    return judged is not None and replica.template_digest == judged.template_digest


def proven(replica: Replica, now: datetime, min_ready: timedelta) -> bool:
    """Whether a replica may take another's place: ready for a while, and it answers the head."""
    ready = replica.state is ReplicaState.READY and replica.is_as_ordered
    return ready and replica.evidence is Evidence.ANSWERS and now - replica.since >= min_ready


def is_foreign(view: ClusterView, replica: Replica) -> bool:
    """Whether the replica is of a deployment that this store never knew: shown, left alone."""
    return view.owner(replica) is None and replica.deployment_uid not in view.departed
