"""A node agent without processes: real gRPC both ways, replicas that are ports in this process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import grpc

from penstock.v1 import common_pb2, inference_pb2, inference_pb2_grpc, nodes_pb2, nodes_pb2_grpc

Context = grpc.aio.ServicerContext[Any, Any]
NO_REUSE = [("grpc.so_reuseport", 0)]


class AnsweringReplica(inference_pb2_grpc.InferenceServicer):
    """Answers Health, nothing else."""

    async def Health(
        self, request: inference_pb2.HealthRequest, context: Context
    ) -> inference_pb2.HealthReply:
        return inference_pb2.HealthReply(ok=True)


class FakeAgent(nodes_pb2_grpc.NodeAgentServicer):
    """Obeys at once. `ready` False keeps new replicas starting; `refuse` refuses them."""

    def __init__(self, node_id: str = "n1") -> None:
        self.node_id = node_id
        self.address = ""
        self.ready = True
        self.refuse = ""
        self.oldest = 0  # revision whose orders it still takes
        self.refusal = grpc.StatusCode.INVALID_ARGUMENT
        self.replicas: dict[str, nodes_pb2.ReplicaStatus] = {}
        self.specs: list[nodes_pb2.ReplicaSpec] = []
        self.stopped: list[str] = []
        self.put_to_sleep: list[str] = []  # though it only ends them
        self.kept: list[nodes_pb2.KeepAdaptersRequest] = []
        self.registrations = 0
        self.stamp = common_pb2.ClusterStamp()  # the newest that it has accepted
        self._servers: dict[str, grpc.aio.Server] = {}

    async def StartReplica(
        self, request: nodes_pb2.StartReplicaRequest, context: Context
    ) -> nodes_pb2.ReplicaStatus:
        spec = request.spec
        if self.refuse:
            await context.abort(self.refusal, self.refuse)
        if request.stamp.revision < self.oldest:
            await context.abort(grpc.StatusCode.FAILED_PRECONDITION, "its store is older")
        self._observe(request.stamp)
        self.specs.append(spec)
        if spec.replica_id not in self.replicas:
            self.replicas[spec.replica_id] = await self._start(spec)
        return self.replicas[spec.replica_id]

    async def StopReplica(
        self, request: nodes_pb2.StopReplicaRequest, context: Context
    ) -> nodes_pb2.StopReplicaReply:
        (self.put_to_sleep if request.sleep else self.stopped).append(request.replica_id)
        await self.kill(request.replica_id)
        return nodes_pb2.StopReplicaReply()

    async def KeepAdapters(
        self, request: nodes_pb2.KeepAdaptersRequest, context: Context
    ) -> nodes_pb2.KeepAdaptersReply:
        if self.refuse:
            await context.abort(self.refusal, self.refuse)
        status = self.replicas.get(request.replica_id)
        if status is None:
            await context.abort(grpc.StatusCode.NOT_FOUND, f"no replica {request.replica_id}")
            raise AssertionError("abort raises")
        self.kept.append(request)
        hold(status, request.keep.adapters)
        return nodes_pb2.KeepAdaptersReply()

    async def kill(self, replica_id: str) -> None:
        """The replica is gone, and the agent knows."""
        self.replicas.pop(replica_id, None)
        await self.silence(replica_id)

    async def silence(self, replica_id: str) -> None:
        """Nothing listens at the replica's address any more; the agent does not know."""
        server = self._servers.pop(replica_id, None)
        if server:
            await server.stop(None)

    async def close(self) -> None:
        for replica_id in list(self._servers):
            await self.silence(replica_id)

    async def report_to(self, head: str) -> None:
        """Registers and heartbeats until cancelled, also while the head is away."""
        registered = False
        while True:
            options = [("grpc.use_local_subchannel_pool", 1)]
            async with grpc.aio.insecure_channel(head, options=options) as channel:
                stub = nodes_pb2_grpc.NodesStub(channel)  # type: ignore[no-untyped-call]
                try:
                    while True:
                        if not registered:
                            await stub.Register(self._registration(), timeout=2)
                            self.registrations += 1
                            registered = True
                        reply = await stub.Heartbeat(self._heartbeat(), timeout=2)
                        registered = not reply.unknown
                        self._observe(reply.stamp)
                        await asyncio.sleep(0.05)
                except grpc.aio.AioRpcError:
                    await asyncio.sleep(0.05)

    def _observe(self, stamp: common_pb2.ClusterStamp) -> None:
        """Keeps it, unless it is of another cluster or an older head."""
        known = self.stamp
        same = stamp.cluster_id == known.cluster_id
        if not known.cluster_id or (
            same and (stamp.epoch, stamp.revision) > (known.epoch, known.revision)
        ):
            self.stamp = stamp

    def _registration(self) -> nodes_pb2.RegisterNodeRequest:
        node = nodes_pb2.NodeInfo(node_id=self.node_id, agent_address=self.address, pid=1)
        return nodes_pb2.RegisterNodeRequest(
            node=node, replicas=self.replicas.values(), stamp=self.stamp
        )

    def _heartbeat(self) -> nodes_pb2.HeartbeatRequest:
        return nodes_pb2.HeartbeatRequest(
            node_id=self.node_id,
            resources=nodes_pb2.NodeResources(cpus=2),
            replicas=self.replicas.values(),
            stamp=self.stamp,
        )

    async def _start(self, spec: nodes_pb2.ReplicaSpec) -> nodes_pb2.ReplicaStatus:
        server = grpc.aio.server(options=NO_REUSE)
        inference_pb2_grpc.add_InferenceServicer_to_server(  # type: ignore[no-untyped-call]
            AnsweringReplica(), server
        )
        port = server.add_insecure_port("127.0.0.1:0")
        await server.start()
        self._servers[spec.replica_id] = server
        ready = nodes_pb2.REPLICA_PHASE_READY
        status = nodes_pb2.ReplicaStatus(
            replica_id=spec.replica_id,
            deployment=spec.deployment,
            revision=spec.revision,
            deployment_uid=spec.deployment_uid,
            template_digest=spec.template_digest,
            devices=spec.devices,
            phase=ready if self.ready else nodes_pb2.REPLICA_PHASE_STARTING,
            address=f"127.0.0.1:{port}",
            pid=4242,
            capacity=8,
            max_model_len=2048,
            adapter_slots=spec.max_adapters,
            max_adapter_rank=spec.max_adapter_rank,
        )
        hold(status, spec.adapters)
        return status


def hold(status: nodes_pb2.ReplicaStatus, adapters: Iterable[inference_pb2.Adapter]) -> None:
    """The replica holds these, and nothing else."""
    del status.adapters[:], status.adapter_digests[:]
    for adapter in adapters:
        status.adapters.append(adapter.name)
        status.adapter_digests.append(adapter.digest)


@asynccontextmanager
async def serving_agent(node_id: str = "n1") -> AsyncIterator[FakeAgent]:
    """An agent that can be asked; it reports only where `report_to` runs."""
    agent = FakeAgent(node_id)
    server = grpc.aio.server(options=NO_REUSE)
    nodes_pb2_grpc.add_NodeAgentServicer_to_server(agent, server)  # type: ignore[no-untyped-call]
    agent.address = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    async with AsyncExitStack() as stack:
        await server.start()
        stack.push_async_callback(server.stop, None)
        stack.push_async_callback(agent.close)
        yield agent
