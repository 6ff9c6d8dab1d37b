"""What gateways and node agents are told of router programs, roles and MicroServing."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest

from penstock.control.managers.cluster_store import ClusterStore
from penstock.control.managers.fleet.health import HealthManager
from penstock.control.managers.routing.programs import Programs
from penstock.control.managers.tenancy.tokens import TokenManager
from penstock.control.managers.write import Write
from penstock.control.rpc.nodes_service import NodesService, ToldToNodes
from penstock.control.rpc.route_wire import RouteEncoder, gateway_report
from penstock.control.state.cluster import ClusterView
from penstock.control.state.fleet.replica import ProgramStatus, ReplicaId
from penstock.control.state.rollout.deployment import created
from penstock.control.state.rollout.template import Template, template_digest
from penstock.control.state.routing.limits import SelectionPolicy, Sharing
from penstock.control.state.routing.program import digest_of
from penstock.control.state.routing.program_counts import ProgramCounts, ProgramFailure
from penstock.control.state.routing.program_setting import Program, Roles, Sees
from penstock.control.state.routing.snapshot import MadeRoutes, Routes, RouteSnapshot
from penstock.control.state.switch import Switch
from penstock.control.state.tenancy.tokens import Role
from penstock.control.store.adapters.content import AdapterContents
from penstock.v1 import nodes_pb2, nodes_pb2_grpc, routes_pb2
from tests.control.rpc.test_services import NoPinger
from tests.fakes.control_clock import ManualClock
from tests.fakes.control_store import MemoryStore
from tests.fakes.control_values import NOON, PATIENCE, UID, node, replica, spec

TEXT = 'USES = {"prep_recv", "commit"}\nasync def route(r, e, s, *, share=0.5): ...\n'
ASKED = SelectionPolicy.PROGRAM
OFTEN = Template("simulated", "penstock-mini", microserving=Switch.ON)


def asking(program: Program, **more: Any) -> Sharing:
    return Sharing(policy=ASKED, program=program, **more)


def view_of(sharing: Sharing, template: Template = OFTEN) -> ClusterView:
    digest = template_digest(template)
    asked = replace(spec(replicas=2), template=template, sharing=sharing)
    view = ClusterView().with_node(node()).with_deployment(created(asked, NOON, uid=UID))
    for name, role in (("a", "prefill"), ("b", "decode")):
        view = view.with_replica(replace(replica(name, digest=digest), role=role))
    return view


def told(view: ClusterView, **shipped: str) -> routes_pb2.RouteSnapshot:
    return RouteEncoder().message(RouteSnapshot(1, NOON, MadeRoutes(shipped).of(view)))


def test_a_gateway_is_told_whom_to_ask_and_within_what() -> None:
    file = Program(digest=digest_of(TEXT), text=TEXT, args=(("share", 0.1), ("which", "x")))
    more = {"sees": Sees.TOKENS, "program_deadline_ms": 5, "transfer_deadline_ms": 70}
    snapshot = told(view_of(asking(file, **more, roles=Roles(1, 1))))
    (route,) = snapshot.deployments
    assert route.selection_policy == "program"
    assert route.program == routes_pb2.Program(
        digest=hashlib.sha256(TEXT.encode()).hexdigest(),
        name=f"the file {digest_of(TEXT)[:12]}",
        args=b'{"share":0.1,"which":"x"}',
        uses=["commit", "prep_recv"],
        sees_tokens=True,
        deadline_ms=5,
        transfer_deadline_ms=70,
    )
    assert [(r.role, r.microserving) for r in snapshot.replicas] == [
        ("prefill", True),
        ("decode", True),
    ]


def test_a_gateway_is_told_of_those_that_ship_and_of_modules_by_name() -> None:
    (shipped,) = told(view_of(asking(Program(name="mine"))), mine=TEXT).deployments
    assert (shipped.program.name, shipped.program.digest) == ("mine", digest_of(TEXT))
    (module,) = told(view_of(asking(Program(module="a.b")))).deployments
    digest = hashlib.sha256(b"module:a.b").hexdigest()
    assert (module.program.name, module.program.digest) == ("a.b", digest)
    assert "remote_send" in module.program.uses


@pytest.mark.parametrize(
    "sharing",
    [
        Sharing(),
        Sharing(program=Program(digest=digest_of(TEXT), text=TEXT)),  # kept for later
        asking(Program(name="of-an-older-version")),
        asking(Program(digest=digest_of("x"), text="x")),  # another version took it for one
    ],
)
def test_without_a_program_nothing_is_told_of_one(sharing: Sharing) -> None:
    plain = Template("simulated", "penstock-mini")
    snapshot = told(view_of(sharing, plain))
    assert not snapshot.deployments[0].HasField("program")
    assert [(r.role, r.microserving) for r in snapshot.replicas] == [("", False)] * 2


def test_a_view_without_programs_tells_what_it_told_before_there_were_any() -> None:
    plain = view_of(Sharing(), Template("simulated", "penstock-mini"))
    assert MadeRoutes().of(plain) == MadeRoutes({"mine": TEXT}).of(plain) != Routes()


def test_what_a_gateway_says_of_a_program_is_kept_by_deployment() -> None:
    report = routes_pb2.ProgramReport(
        digest="d",
        unavailable="no process",
        asked=5,
        decided=3,
        failures=[routes_pb2.ProgramFailure(reason="dead", count=2, last="it ended")],
        moved_tokens=640,
        moved_bytes=1 << 40,
    )
    deployments = [
        routes_pb2.DeploymentReport(deployment="mini", program=report),
        routes_pb2.DeploymentReport(deployment="plain"),
    ]
    told = gateway_report(routes_pb2.GatewayReport(at_ms=1, deployments=deployments))
    failure = ProgramFailure("dead", 2, "it ended")
    assert told.programs == {
        "mini": ProgramCounts("d", "no process", 5, 3, (failure,), 640, 1 << 40)
    }


@dataclass(frozen=True, slots=True)
class Told:
    """A head's Nodes service, and what stands behind it."""

    cluster: ClusterStore
    tokens: TokenManager
    nodes: Any

    async def heartbeat(self, **said: Any) -> nodes_pb2.HeartbeatReply:
        reply: nodes_pb2.HeartbeatReply = await self.nodes.Heartbeat(
            nodes_pb2.HeartbeatRequest(node_id="n1", **said)
        )
        return reply


@pytest.fixture
async def head(tmp_path: Path) -> AsyncIterator[Told]:
    """One that knows a node, and has a deployment that asks a program."""
    clock = ManualClock()
    cluster = ClusterStore(MemoryStore(), clock)
    file = asking(Program(digest=digest_of(TEXT), text=TEXT))
    await cluster.observe(lambda _: view_of(file), "test")
    tokens, programs = TokenManager(cluster, clock), Programs(cluster)
    told_to = ToldToNodes(programs.wanted, programs.text, tokens.router_digests)
    health = HealthManager(cluster, NoPinger(), clock, PATIENCE, ping_every=timedelta(seconds=1))
    service = NodesService(
        health, timedelta(seconds=1), AdapterContents(tmp_path), lambda: cluster.stamp, told_to
    )
    server = grpc.aio.server()
    nodes_pb2_grpc.add_NodesServicer_to_server(service, server)  # type: ignore[no-untyped-call]
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        nodes = nodes_pb2_grpc.NodesStub(channel)  # type: ignore[no-untyped-call]
        info = nodes_pb2.NodeInfo(node_id="n1", agent_address="n1:7000", host="n1")
        await nodes.Register(nodes_pb2.RegisterNodeRequest(node=info))
        yield Told(cluster, tokens, nodes)
    await server.stop(None)


async def test_an_agent_is_told_what_is_to_run_and_fetches_it(head: Told) -> None:
    (program,) = (await head.heartbeat()).programs
    assert program == nodes_pb2.RouterProgram(
        deployment_uid=UID, deployment="mini", digest=digest_of(TEXT)
    )
    request = nodes_pb2.FetchProgramRequest(digest=program.digest)
    assert (await head.nodes.FetchProgram(request)).text == TEXT.encode()
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await head.nodes.FetchProgram(nodes_pb2.FetchProgramRequest(digest="0" * 64))
    assert refused.value.code() is grpc.StatusCode.NOT_FOUND


async def test_how_programs_fare_is_known_beside_the_view(head: Told) -> None:
    said = nodes_pb2.ProgramStatus(
        deployment_uid=UID, digest="d", running=True, restarts=2, last_error="it raised"
    )
    before = head.cluster.view()
    await head.heartbeat(programs=[said])
    observed = head.cluster.liveness.known.nodes[node().id]
    assert observed.programs == (ProgramStatus(UID, "d", True, 2, "it raised"),)
    assert head.cluster.view().programs is before.programs


async def test_an_agent_is_told_of_live_router_tokens_alone(head: Told) -> None:
    _, secret = await head.tokens.create("route", Role.ROUTER, Write("test"))
    await head.tokens.create("root", Role.ADMIN, Write("test"))
    digest = hashlib.sha256(secret.encode()).digest()
    assert list((await head.heartbeat()).router_tokens) == [digest]
    (token,) = (each for each in head.tokens.all() if each.role is Role.ROUTER)
    await head.tokens.revoke(token.id, Write("test"))
    assert not (await head.heartbeat()).router_tokens


async def test_what_a_replica_serves_by_rest_is_known(head: Told) -> None:
    status = nodes_pb2.ReplicaStatus(
        replica_id="a",
        deployment="mini",
        deployment_uid=UID,
        template_digest=template_digest(OFTEN),
        revision=1,
        phase=nodes_pb2.REPLICA_PHASE_READY,
        address="h:1",
        microserving_rest="h:2",
    )
    await head.heartbeat(replicas=[status])
    assert head.cluster.view().replicas[ReplicaId("a")].status.microserving_rest == "h:2"
