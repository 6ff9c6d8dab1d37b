"""Values of the control plane that tests start from."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from penstock.control.managers.cluster_store import ClusterStore
from penstock.control.state.fleet.health import Patience
from penstock.control.state.fleet.replica import (
    Node,
    NodeFacts,
    NodeId,
    NodeState,
    Replica,
    ReplicaId,
    ReplicaState,
    ReplicaStatus,
)
from penstock.control.state.rollout.deployment import (
    Deployment,
    DeploymentName,
    DeploymentSpec,
    created,
)
from penstock.control.state.rollout.placing import replica_of
from penstock.control.state.rollout.replacing import Deadlines
from penstock.control.state.rollout.revision import served
from penstock.control.state.rollout.template import Template, template_digest
from penstock.control.state.rollout.update import RolloutSettings, Update

NOON = datetime(2026, 1, 2, 12, 0, tzinfo=UTC)
SECOND = timedelta(seconds=1)
MINI = DeploymentName("mini")
PATIENCE = Patience(
    silent_after=timedelta(seconds=5),
    lost_after=timedelta(seconds=30),
    forget_after=timedelta(minutes=10),
)
UID = "u1"  # of deployments and replicas, unless a test says otherwise
DEADLINES = Deadlines(
    ready=timedelta(minutes=10),
    retry_failed=timedelta(minutes=1),
)


def spec(*, name: str = "mini", replicas: int = 1, model: str = "penstock-mini") -> DeploymentSpec:
    """A simulated deployment's spec."""
    template = Template(engine="simulated", model=model)
    rollout = RolloutSettings(Update(min_ready_ms=5000))
    return DeploymentSpec(DeploymentName(name), template, replicas=replicas, rollout=rollout)


MIN_READY = 5 * SECOND


DIGEST = template_digest(spec().template)


def deployment(of: DeploymentSpec | None = None, *, uid: str = UID) -> Deployment:
    """A deployment that was just created."""
    return created(of or spec(), NOON, uid=uid)


def in_service(known: Deployment) -> Deployment:
    """A deployment whose revision has served."""
    return replace(known, revisions=served(known.revisions))


async def contradict(cluster: ClusterStore) -> None:
    """A node that the store knows tells of a later state than the store's: the head holds still."""
    await cluster.observe(lambda view: view.with_node(node()), "test")
    own = cluster.stamp
    await cluster.observe_stamp("node n1", replace(own, revision=own.revision + 9))


def node(name: str = "n1", state: NodeState = NodeState.READY) -> Node:
    """A node whose agent is at port 7000 of a host of its own name."""
    facts = NodeFacts(NodeId(name), agent_address=f"{name}:7000", host=name)
    return Node(facts, state, since=NOON)


def report(
    replica_id: str,
    state: ReplicaState = ReplicaState.READY,
    *,
    deployment: str = "mini",
    uid: str = UID,
    digest: str = DIGEST,
    address: str = "",
    pid: int = 1,
    last_error: str = "",
) -> ReplicaStatus:
    """What an agent reports of a replica."""
    return ReplicaStatus(
        replica_id=ReplicaId(replica_id),
        deployment=DeploymentName(deployment),
        deployment_uid=uid,
        template_digest=digest,
        generation=1,
        state=state,
        address=address or f"{replica_id}:9000",
        pid=pid,
        last_error=last_error,
    )


def replica(
    name: str = "r1",
    state: ReplicaState = ReplicaState.READY,
    *,
    node_id: str = "n1",
    uid: str = UID,
    digest: str = DIGEST,
    deployment: str = "mini",
) -> Replica:
    """A replica that its agent reports in the same state."""
    status = report(name, state, uid=uid, digest=digest, deployment=deployment)
    return replica_of(status, NodeId(node_id), NOON)
