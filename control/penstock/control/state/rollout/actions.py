"""What the reconcile loop may do. Each is safe to do twice."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.control.state.fleet.replica import NodeId, ReplicaId
from penstock.control.state.rollout.deployment import DeploymentName
from penstock.control.state.rollout.revision import Cause


@dataclass(frozen=True, slots=True)
class Place:
    """Give a new replica of the deployment's present template to a node."""

    deployment: DeploymentName
    node: NodeId
    devices: tuple[str, ...] = ()  # uuids of the accelerators that it gets
    digest: str = ""  # of the template that is judged beside the present one; empty: it is not that


@dataclass(frozen=True, slots=True)
class Wake:
    """Have a replica that sleeps serve again."""

    replica_id: ReplicaId


@dataclass(frozen=True, slots=True)
class Drain:
    """Send a replica nothing new from now on; it will be stopped."""

    replica_id: ReplicaId
    reason: str
    trouble: str = ""  # what the deployment's status says from now on; empty: nothing went wrong
    to_sleep: bool = False  # it will be put to sleep, not ended


@dataclass(frozen=True, slots=True)
class Abandon:
    """Wait no longer for a replica that its agent never started."""

    replica_id: ReplicaId
    trouble: str  # what the deployment's status says from now on


@dataclass(frozen=True, slots=True)
class Settle:
    """All replicas are ready: what the deployment's status said of trouble is over."""

    deployment: DeploymentName


@dataclass(frozen=True, slots=True)
class Confirm:
    """The deployment's revision has served."""

    deployment: DeploymentName


@dataclass(frozen=True, slots=True)
class GiveUp:
    """The deployment's revision does not get on, and another one served."""

    deployment: DeploymentName
    cause: Cause


@dataclass(frozen=True, slots=True)
class LetOn:
    """The canary of the deployment's revision passed it: it takes the place of the one before."""

    deployment: DeploymentName


@dataclass(frozen=True, slots=True)
class Start:
    """Ask the agent of a pending replica to start it, or to wake it."""

    replica_id: ReplicaId


@dataclass(frozen=True, slots=True)
class Stop:
    """Ask the agent of a draining replica to stop it, or to put it to sleep."""

    replica_id: ReplicaId


Decision = Place | Wake | Drain | Abandon | Settle | Confirm | GiveUp | LetOn  # changes the view
Call = Start | Stop  # asks an agent
Action = Decision | Call


def described(decision: Decision) -> str:
    """One line for the audit trail and the log."""
    match decision:
        case Place(deployment, node):
            return f"place {deployment} on {node}"
        case Wake(replica_id):
            return f"wake {replica_id}"
        case Drain(replica_id, reason):
            return f"drain {replica_id}: {reason}"
        case Abandon(replica_id, trouble):
            return f"abandon {replica_id}: {trouble}"
        case Settle(deployment):
            return f"{deployment} is as desired"
        case Confirm(deployment):
            return f"the revision of {deployment} serves"
        case LetOn(deployment):
            return f"the revision of {deployment} was judged good"
        case GiveUp(deployment, cause):
            return f"give up the revision of {deployment}: {cause.text}"
