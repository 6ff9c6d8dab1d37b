"""A fleet that is only simulated: agents, replicas and gateways in one process, over real gRPC."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import grpc
import grpc.aio

from penstock.adapters.adapter import AdapterRef, BaseModelFamily
from penstock.adapters.version import CONTENT_FILES, AdapterVersion, Manifest, StoredFile
from penstock.control.declared.messages import message_of
from penstock.control.managers.cluster_store import ClusterStore
from penstock.control.outside.clock import SystemClock
from penstock.control.state.adapters.registry import AdapterRegistry
from penstock.control.state.cluster import ClusterView
from penstock.control.state.fleet.replica import (
    Node,
    NodeFacts,
    NodeId,
    NodeState,
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
from penstock.control.state.rollout.template import Template
from penstock.control.state.tenancy.tenancy import Tenancy
from penstock.control.state.tenancy.tenants import ApiKey, Tenant, TenantSpec
from penstock.control.store.sqlite import SqliteStore
from penstock.control.store.store import Author
from penstock.v1 import (
    inference_pb2,
    inference_pb2_grpc,
    nodes_pb2,
    nodes_pb2_grpc,
    routes_pb2,
    routes_pb2_grpc,
)

Says = Callable[[routes_pb2.RouteSnapshot], bool]

HEARTBEAT = 1.0  # seconds


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much of everything."""

    nodes: int
    replicas: int
    deployments: int
    gateways: int
    tenants: int = 0  # with two keys each
    adapters: int = 0  # versions for the first deployment


class AnsweringReplica(inference_pb2_grpc.InferenceServicer):
    """Says that it is well."""

    async def Health(self, request: Any, context: Any) -> inference_pb2.HealthReply:
        """Always."""
        return inference_pb2.HealthReply(ok=True)


@dataclass
class SimulatedGateway:
    """The newest snapshot, and whoever waits for another."""

    name: str
    snapshot: routes_pb2.RouteSnapshot = field(default_factory=routes_pb2.RouteSnapshot)
    changed: asyncio.Condition = field(default_factory=asyncio.Condition)


class Fleet:
    """All but the head."""

    def __init__(self, sizes: Sizes) -> None:
        self.sizes = sizes
        self.deployments = [self._deployment(n) for n in range(sizes.deployments)]
        self.gateways = [SimulatedGateway(f"gw-{n}") for n in range(sizes.gateways)]
        self.tenants = [f"t{n}" for n in range(sizes.tenants)]
        self._addresses: list[str] = []

    def deployment_name(self, number: int) -> str:
        """One of the deployments."""
        return str(self.deployments[number % len(self.deployments)].spec.name)

    async def serve(self, stack: AsyncExitStack) -> None:
        """One port for all replicas of a node: the head keeps a connection to each address."""
        for _ in range(self.sizes.nodes):
            server = grpc.aio.server()
            inference_pb2_grpc.add_InferenceServicer_to_server(  # type: ignore[no-untyped-call]
                AnsweringReplica(), server
            )
            port = server.add_insecure_port("127.0.0.1:0")
            await server.start()
            stack.push_async_callback(server.stop, None)
            self._addresses.append(f"127.0.0.1:{port}")

    def replicas(self, node: int) -> Iterator[ReplicaStatus]:
        """What runs on a node."""
        for number in range(node, self.sizes.replicas, self.sizes.nodes):
            deployment = self.deployments[number % len(self.deployments)]
            yield ReplicaStatus(
                ReplicaId(f"r{number}"),
                deployment.spec.name,
                deployment.uid,
                deployment.template_digest,
                1,
                ReplicaState.READY,
                address=self._addresses[node],
                pid=number + 1,
                capacity=8,
                max_model_len=4096,
            )

    def parts(self, head: str, token: str) -> Iterator[Coroutine[Any, Any, None]]:
        """Everything that runs beside the head."""
        metadata = (("authorization", f"Bearer {token}"),)
        for node in range(self.sizes.nodes):
            yield self._heartbeats(head, metadata, node)
        for gateway in self.gateways:
            yield self._watches(head, metadata, gateway)
            yield self._reports(head, metadata, gateway)

    async def every_gateway(self, says: Says, seconds: float | None = 10) -> None:
        """Returns when each gateway's snapshot says so. Raises `TimeoutError`."""
        for gateway in self.gateways:
            async with gateway.changed, asyncio.timeout(seconds):
                await gateway.changed.wait_for(partial(_says, gateway, says))

    def tenancy(self) -> Tenancy:
        """All tenants, with keys that nobody has."""
        now, found = datetime.now(UTC), Tenancy()
        tenants = {
            name: Tenant(name, f"uid-{name}", 1, TenantSpec(), now, now) for name in self.tenants
        }
        keys = {
            f"key-{name}-{n}": ApiKey(
                f"key-{name}-{n}", name, "", sha256(f"{name} {n}".encode()).hexdigest(), now
            )
            for name in self.tenants
            for n in range(2)
        }
        return replace(found, tenants=tenants, keys=keys)

    def adapters(self) -> AdapterRegistry:
        """Versions for the first deployment."""
        family = self.deployments[0].spec.template.family
        versions = (_version(number, family) for number in range(self.sizes.adapters))
        return AdapterRegistry(versions={each.ref: each for each in versions})

    def _usage(self, requests: int) -> list[routes_pb2.UsageReport]:
        """What a tenth of the tenants did, all of them more each time."""
        return [
            routes_pb2.UsageReport(
                tenant=name, key_id=f"key-{name}-0", deployment="d0", requests=requests
            )
            for name in self.tenants[::10]
        ]

    def _deployment(self, number: int) -> Deployment:
        wanted = len(range(number, self.sizes.replicas, self.sizes.deployments))
        slots = 4 if number == 0 else 0
        template = Template("simulated", f"model-{number}", max_adapters=slots)
        spec = DeploymentSpec(DeploymentName(f"d{number}"), template, replicas=wanted)
        return created(spec, datetime.now(UTC), uid=f"uid-{number}")

    async def _heartbeats(self, head: str, metadata: Any, node: int) -> None:
        await asyncio.sleep(HEARTBEAT * node / self.sizes.nodes)
        replicas = [_message(status) for status in self.replicas(node)]
        info = nodes_pb2.NodeInfo(node_id=f"n{node}", agent_address="127.0.0.1:1", host="h")
        async with _channel(head) as channel:
            nodes = nodes_pb2_grpc.NodesStub(channel)  # type: ignore[no-untyped-call]
            register = nodes_pb2.RegisterNodeRequest(node=info, replicas=replicas)
            await nodes.Register(register, metadata=metadata)
            while True:
                free = nodes_pb2.NodeResources(memory_available_bytes=time.monotonic_ns())
                beat = nodes_pb2.HeartbeatRequest(
                    node_id=f"n{node}", replicas=replicas, resources=free
                )
                await nodes.Heartbeat(beat, metadata=metadata)
                await asyncio.sleep(HEARTBEAT)

    async def _watches(self, head: str, metadata: Any, gateway: SimulatedGateway) -> None:
        async with _channel(head) as channel:
            routes = routes_pb2_grpc.RoutesStub(channel)  # type: ignore[no-untyped-call]
            request = routes_pb2.WatchRoutesRequest(gateway_id=gateway.name)
            async for snapshot in routes.Watch(request, metadata=metadata):
                async with gateway.changed:
                    gateway.snapshot = snapshot
                    gateway.changed.notify_all()

    async def _reports(self, head: str, metadata: Any, gateway: SimulatedGateway) -> None:
        async with _channel(head) as channel:
            routes = routes_pb2_grpc.RoutesStub(channel)  # type: ignore[no-untyped-call]
            stream = routes.Report(metadata=metadata)
            requests = 0
            while True:
                requests += 100
                counts = [
                    routes_pb2.DeploymentReport(deployment=d.spec.name, requests=requests)
                    for d in self.deployments[:100]
                ]
                report = routes_pb2.GatewayReport(
                    gateway_id=gateway.name,
                    at_ms=time.monotonic_ns() // 1_000_000,
                    snapshot_version=gateway.snapshot.version,
                    deployments=counts,
                    bytes_sent=requests,
                    instance=gateway.name,
                    usage=self._usage(requests),
                )
                await stream.write(report)
                await asyncio.sleep(HEARTBEAT)


def _says(gateway: SimulatedGateway, says: Says) -> bool:
    return says(gateway.snapshot)


def limit_of(name: str, max_queued: int) -> Says:
    """That a deployment has this limit."""
    return lambda snapshot: any(
        d.limits.max_queued == max_queued for d in snapshot.deployments if d.name == name
    )


def key_taken(sha256: bytes, *, wanted: bool) -> Says:
    """That there is this key, or is no more."""
    return lambda snapshot: (
        any(key.sha256 == sha256 for tenant in snapshot.tenants for key in tenant.keys) is wanted
    )


def alias_of(alias: str, adapter: str) -> Says:
    """That an alias names this."""
    return lambda snapshot: any(
        (a.alias, a.adapter) == (alias, adapter) for d in snapshot.deployments for a in d.aliases
    )


async def filled_store(path: Path, fleet: Fleet) -> None:
    """A store that knows the whole fleet."""
    store = await SqliteStore.open(path)
    cluster = ClusterStore(store, SystemClock())
    await cluster.restore()
    await cluster.apply(lambda view: _full(view, fleet), Author("benchmark", "fill"))
    await store.close()


def _full(view: ClusterView, fleet: Fleet) -> ClusterView:
    now = datetime.now(UTC)
    nodes = {
        NodeId(f"n{n}"): Node(NodeFacts(NodeId(f"n{n}"), "127.0.0.1:1"), NodeState.READY, since=now)
        for n in range(fleet.sizes.nodes)
    }
    replicas = {
        status.replica_id: replica_of(status, node_id, now)
        for n, node_id in enumerate(nodes)
        for status in fleet.replicas(n)
    }
    deployments = {d.spec.name: d for d in fleet.deployments}
    return replace(
        view,
        deployments=deployments,
        nodes=nodes,
        replicas=replicas,
        tenancy=fleet.tenancy(),
        adapters=fleet.adapters(),
    )


def _version(number: int, family: BaseModelFamily) -> AdapterVersion:
    files = tuple(
        StoredFile(name, sha256(f"{name} {number}".encode()).hexdigest(), 1000)
        for name in CONTENT_FILES
    )
    manifest = Manifest(files, family, 8, ("q_proj",), "nowhere", datetime.now(UTC), "benchmark")
    return AdapterVersion(AdapterRef("a", str(number)), manifest)


def _channel(head: str) -> grpc.aio.Channel:
    options = [("grpc.use_local_subchannel_pool", 1), ("grpc.enable_http_proxy", 0)]
    options.append(("grpc.max_receive_message_length", 64 << 20))
    return grpc.aio.insecure_channel(head, options=options)


def _message(status: ReplicaStatus) -> nodes_pb2.ReplicaStatus:
    ready = nodes_pb2.REPLICA_PHASE_READY
    return message_of(nodes_pb2.ReplicaStatus, status, revision=status.generation, phase=ready)
