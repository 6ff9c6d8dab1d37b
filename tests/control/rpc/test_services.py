"""The head's gRPC services over a real connection."""

from __future__ import annotations

import json
import shutil
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import grpc
import pytest

from penstock.adapters.alias import Alias, Move, Target
from penstock.adapters.fitness import FamilyLimits
from penstock.adapters.version import CONFIG_FILE, CONTENT_FILES, WEIGHTS_FILE
from penstock.control.managers.cluster_store import ClusterStore
from penstock.control.managers.fleet.gateway_reports import GatewayReports
from penstock.control.managers.fleet.gateway_signs import GatewaySigns
from penstock.control.managers.fleet.health import HealthManager
from penstock.control.managers.observe.explain import ExplainManager
from penstock.control.managers.routing.routes import RouteManager
from penstock.control.managers.tenancy.shares import ShareManager
from penstock.control.managers.tenancy.spend import SpendManager
from penstock.control.managers.tenancy.usage import UsageManager
from penstock.control.rpc.nodes_service import NodesService
from penstock.control.rpc.routes_service import RoutesService
from penstock.control.rpc.server import serve_rpc
from penstock.control.state.cluster import ClusterView, Gateway, GatewayState
from penstock.control.state.fleet.pings import Ping
from penstock.control.state.fleet.replica import (
    FailedAdapter,
    ReplicaAddress,
    ReplicaStart,
    ReplicaState,
    StartKind,
    StartStage,
    WarmPool,
)
from penstock.control.state.rollout.deployment import created
from penstock.control.state.rollout.template import Template, template_digest
from penstock.control.state.routing.degrading import degrading
from penstock.control.state.routing.limits import (
    CanaryWeight,
    Limits,
    SelectionPolicy,
    SessionAffinity,
    Sharing,
)
from penstock.control.state.switch import Switch
from penstock.control.state.tenancy.prices import Prices
from penstock.control.state.tenancy.spend import Budgets, Spending
from penstock.control.store.adapters.content import AdapterContents
from penstock.v1 import inference_pb2, nodes_pb2, nodes_pb2_grpc, routes_pb2, routes_pb2_grpc
from tests.adapters.examples import CONFIG, safetensors
from tests.adapters.examples import version as adapter_version
from tests.fakes.control_clock import ManualClock
from tests.fakes.control_store import MemoryStore
from tests.fakes.control_values import MINI, NOON, PATIENCE, UID, node, spec

LIMITS = Limits(4, 1, 2, 3, 5, 0.5, 6, 7, 8, 9, Switch.OFF, 10)
SHIPPED = Path("replica/penstock/replica/default_model/weights/adapters/pirate")
SHARING = Sharing(SelectionPolicy.SESSION, (CanaryWeight("next", 50),), SessionAffinity.REVISION)


class NoPinger:
    """Never asked in these tests."""

    async def ping(self, replica: ReplicaAddress) -> Ping:
        raise AssertionError(f"pinged {replica}")

    async def deep_check(self, replica: ReplicaAddress) -> bool:
        raise AssertionError(f"checked {replica}")


@dataclass(frozen=True, slots=True)
class Served:
    """A served head and stubs that reach it."""

    cluster: ClusterStore
    contents: AdapterContents
    nodes: Any
    routes: Any

    @property
    def view(self) -> ClusterView:
        return self.cluster.view()


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[Served]:
    clock = ManualClock()
    store = MemoryStore()
    cluster = ClusterStore(store, clock)
    contents = AdapterContents(tmp_path)
    routes = RouteManager(cluster, clock)
    spend = SpendManager(cluster, store, clock)
    usage = UsageManager(cluster, store, ShareManager(cluster, clock), spend, clock)
    health = HealthManager(cluster, NoPinger(), clock, PATIENCE, ping_every=timedelta(seconds=1))
    await cluster.observe(_with_everything, "test")
    await routes.open()
    reports = GatewayReports(cluster, GatewaySigns(clock), clock)
    service = RoutesService(routes, reports, usage, ExplainManager(cluster, clock))
    agents = NodesService(health, timedelta(seconds=1), contents)
    server, port = await serve_rpc("127.0.0.1:0", service, agents)
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        nodes = nodes_pb2_grpc.NodesStub(channel)  # type: ignore[no-untyped-call]
        yield Served(cluster, contents, nodes, routes_pb2_grpc.RoutesStub(channel))  # type: ignore[no-untyped-call]
    await server.stop(None)


TEMPLATE = replace(spec().template, max_adapters=2)
WITH_ADAPTERS = template_digest(TEMPLATE)
PIRATE, PARROT = (
    adapter_version(f"{name}@1", name, family=TEMPLATE.family) for name in ("pirate", "parrot")
)
SPLIT = Target.split({PIRATE.ref: 9, PARROT.ref: 1})


def _with_everything(view: ClusterView) -> ClusterView:
    """A deployment with every field set, and no node yet."""
    full = replace(
        spec(),
        template=TEMPLATE,
        limits=LIMITS,
        sharing=SHARING,
        degrading=degrading({"default": ["trim", "fallback:next"], "budget": []}, "trim"),
        budgets=Budgets(usd_per_day=1),
        prices=Prices(0.25, 1.0),
    )
    view = replace(view, spending=Spending(NOON.date(), frozenset({"mini"})))
    cloud = Template("openai", "/srv/models/gpt", (("api_key_env", "KEY"), ("tools", "false")))
    view = view.with_deployment(created(replace(spec(name="next"), template=cloud), NOON, uid="u2"))
    alias = Alias("mini", "sea", (Move(SPLIT, NOON, "alice"),))
    adapters = view.adapters.with_version(PIRATE).with_version(PARROT).with_alias(alias)
    return replace(view, adapters=adapters).with_deployment(created(full, NOON, uid=UID))


def status(phase: nodes_pb2.ReplicaPhase, replica_id: str = "r1") -> nodes_pb2.ReplicaStatus:
    return nodes_pb2.ReplicaStatus(
        replica_id=replica_id,
        deployment="mini",
        deployment_uid=UID,
        template_digest=WITH_ADAPTERS,
        revision=1,
        phase=phase,
        address="127.0.0.1:9",
        pid=7,
        restarts=2,
        exit_code=-9,
        last_error="ouch",
        log_path="/log",
        max_model_len=512,
        capacity=3,
        endpoints=["/v1/completions"],
        adapters=["pirate@1"],
        adapter_digests=["a" * 64],
        failed_adapters=[inference_pb2.AdapterFailure(name="json@1", digest="b", reason="rank")],
        adapter_slots=4,
        max_adapter_rank=16,
        start=nodes_pb2.ReplicaStart(
            kind="START_KIND_WARM", stages=[nodes_pb2.StartStage(name="claim", ms=40)]
        ),
    )


def registration(*replicas: nodes_pb2.ReplicaStatus) -> nodes_pb2.RegisterNodeRequest:
    info = nodes_pb2.NodeInfo(node_id="n1", agent_address="h:1", host="h", zone="z", pid=3)
    info.metrics_address = "0.0.0.0:8085"
    return nodes_pb2.RegisterNodeRequest(node=info, replicas=replicas)


async def test_a_registered_node_stands_in_the_view_with_its_replicas(served: Served) -> None:
    ready = nodes_pb2.REPLICA_PHASE_READY
    reply = await served.nodes.Register(registration(status(ready)))
    assert reply.heartbeat_ms == 1000
    facts = served.view.nodes[node().id].facts
    assert (facts.agent_address, facts.host, facts.zone, facts.pid) == ("h:1", "h", "z", 3)
    assert facts.metrics_address == "0.0.0.0:8085"
    (one,) = served.view.replicas.values()
    found = one.status
    assert (one.state, one.node, found.pid, found.restarts) == (ReplicaState.READY, "n1", 7, 2)
    assert (found.exit_code, found.last_error, found.log_path) == (-9, "ouch", "/log")
    assert (found.max_model_len, found.capacity, found.adapters) == (512, 3, ("pirate@1",))
    assert found.endpoints == ("/v1/completions",)
    assert found.adapter_digests == ("a" * 64,)
    assert found.failed_adapters == (FailedAdapter("json@1", "b", "rank"),)
    assert (found.adapter_slots, found.max_adapter_rank) == (4, 16)
    assert found.start == ReplicaStart(StartKind.WARM, "", (StartStage("claim", 40),))


async def test_a_heartbeat_tells_of_the_nodes_warm_pool(served: Served) -> None:
    await served.nodes.Register(registration())
    pool = nodes_pb2.WarmPool(target=2, waiting=1, reason="x", claims=3)
    await served.nodes.Heartbeat(nodes_pb2.HeartbeatRequest(node_id="n1", warm_pool=pool))
    assert served.cluster.liveness.nodes[node().id].warm_pool == WarmPool(2, 1, "x", 3)


async def test_a_node_without_a_name_or_address_is_refused(served: Served) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await served.nodes.Register(nodes_pb2.RegisterNodeRequest())
    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT


async def test_a_heartbeat_of_an_unknown_node_is_told_to_register(served: Served) -> None:
    heartbeat = nodes_pb2.HeartbeatRequest(node_id="n1")
    assert (await served.nodes.Heartbeat(heartbeat)).unknown
    await served.nodes.Register(registration())
    assert not (await served.nodes.Heartbeat(heartbeat)).unknown


@pytest.mark.parametrize(
    ("phase", "state"),
    [
        (nodes_pb2.REPLICA_PHASE_STARTING, ReplicaState.STARTING),
        (nodes_pb2.REPLICA_PHASE_READY, ReplicaState.READY),
        (nodes_pb2.REPLICA_PHASE_DRAINING, ReplicaState.DRAINING),
        (nodes_pb2.REPLICA_PHASE_BACKOFF, ReplicaState.BACKOFF),
        (nodes_pb2.REPLICA_PHASE_FAILED, ReplicaState.FAILED),
        (nodes_pb2.REPLICA_PHASE_UNSPECIFIED, ReplicaState.STARTING),
    ],
)
async def test_every_phase_has_its_state(
    served: Served, phase: nodes_pb2.ReplicaPhase, state: ReplicaState
) -> None:
    await served.nodes.Register(registration())
    await served.nodes.Heartbeat(nodes_pb2.HeartbeatRequest(node_id="n1", replicas=[status(phase)]))
    assert [r.status.state for r in served.view.replicas.values()] == [state]


async def test_a_stopped_replica_leaves_the_view(served: Served) -> None:
    await served.nodes.Register(registration(status(nodes_pb2.REPLICA_PHASE_READY)))
    stopped = [status(nodes_pb2.REPLICA_PHASE_STOPPED)]
    await served.nodes.Heartbeat(nodes_pb2.HeartbeatRequest(node_id="n1", replicas=stopped))
    assert not served.view.replicas


async def test_a_watcher_gets_every_field_of_the_routes(served: Served) -> None:
    await served.nodes.Register(registration(status(nodes_pb2.REPLICA_PHASE_READY)))
    stream = served.routes.Watch(routes_pb2.WatchRoutesRequest(gateway_id="g", have_version=90_000))
    snapshot = await stream.read()
    stream.cancel()
    assert snapshot.version == 90_001
    assert snapshot.made_at_ms == int(NOON.timestamp() * 1000)
    deployment, cloud = snapshot.deployments
    assert cloud.model == "gpt", "clients are told of no directory"
    assert (deployment.name, deployment.model, deployment.generation) == (MINI, "penstock-mini", 1)
    assert (deployment.uid, deployment.template_digest) == (UID, WITH_ADAPTERS)
    assert (deployment.max_model_len, deployment.created) == (512, int(NOON.timestamp()))
    assert list(deployment.endpoints) == ["/v1/completions"]
    (alias,) = deployment.aliases
    assert (alias.alias, alias.adapter) == ("sea", "parrot@1")
    assert [(s.adapter, s.weight) for s in alias.shares] == [("parrot@1", 1), ("pirate@1", 9)]
    assert [(a.name, a.digest, a.base_family) for a in snapshot.adapters] == [
        (str(each.ref), each.manifest.digest, "penstock-mini") for each in (PARROT, PIRATE)
    ]
    assert all(a.created for a in snapshot.adapters)
    limits = deployment.limits
    assert (limits.max_ongoing, limits.max_queued) == (4, 1)
    assert (limits.queue_deadline_ms, limits.first_event_deadline_ms) == (2, 3)
    assert (limits.wait_budget_ms, limits.kv_pressure, limits.max_prompt_tokens) == (5, 0.5, 6)
    assert (limits.max_completion_tokens, limits.max_n) == (7, 8)
    assert limits.progress_deadline_ms == 9
    assert (deployment.selection_policy, deployment.session_affinity) == ("session", "revision")
    assert [(c.deployment, c.permille) for c in deployment.canary] == [("next", 50)]
    ladders = [(each.reason, list(each.rungs)) for each in deployment.ladders]
    assert ladders == [("", ["trim", "fallback:next"]), ("budget", [])]
    assert (deployment.trims, deployment.managed, deployment.without_tools) == (True, False, False)
    assert deployment.prices == routes_pb2.Prices(input=0.25, output=1, cached=0.25)
    assert (deployment.budget_used_up, deployment.budget_nanousd_per_day) == (True, 10**9)
    assert deployment.budget_resets_at_ms == int(NOON.timestamp() * 1000) + 12 * 3_600_000
    assert (cloud.trims, cloud.managed, cloud.without_tools) == (False, True, True)
    (route,) = snapshot.replicas
    assert (route.id, route.deployment, route.address) == ("r1", "mini", "127.0.0.1:9")
    assert (route.node, route.zone, route.capacity, route.revision) == ("n1", "z", 3, 1)
    assert (route.deployment_uid, route.template_digest) == (UID, WITH_ADAPTERS)
    assert route.state == inference_pb2.REPLICA_STATE_READY
    assert list(route.adapters) == ["pirate@1"]


async def test_the_latest_report_of_a_gateway_is_kept(served: Served) -> None:
    local = Gateway("gw-1", GatewayState.READY, address="a:1", pid=5)
    await served.cluster.observe(lambda view: view.with_gateway(local), "test")
    counts = routes_pb2.DeploymentReport(
        deployment="mini", queued=1, in_flight=2, requests=9, sent=8, estimated_wait_ms=7
    )
    counts.resumed = 12
    doubt = routes_pb2.ReplicaDoubt(replica_id="r1", reason="slow", for_ms=6)
    for gateway_id in ("gw-1", "far"):
        stream = served.routes.Report()
        for version in (1, 2):
            report = routes_pb2.GatewayReport(
                gateway_id=gateway_id, at_ms=1, snapshot_version=version, deployments=[counts]
            )
            report.instance, report.metrics_address = "i", "0.0.0.0:8083"
            report.doubts.append(doubt)
            await stream.write(report)
        await stream.done_writing()
        await stream.read()
    known, far = served.view.gateways["gw-1"], served.view.gateways["far"]
    assert (known.state, known.pid, known.address) == (GatewayState.READY, 5, "a:1")
    assert far.state is GatewayState.REMOTE
    assert known.report == far.report
    assert known.report
    assert known.report.snapshot_version == 2
    (found,) = known.report.deployments
    assert (found.queued, found.in_flight, found.requests) == (1, 2, 9)
    assert (found.sent, found.estimated_wait_ms, found.resumed) == (8, 7, 12)
    told = known.report
    assert (told.instance, told.doubts) == ("i", (("r1", "slow", 6),))
    assert (told.metrics_address, told.machine) == ("0.0.0.0:8083", "127.0.0.1")


async def test_a_report_from_outside_the_calendar_is_refused(served: Served) -> None:
    stream = served.routes.Report()
    await stream.write(routes_pb2.GatewayReport(gateway_id="g", at_ms=2**62))
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await stream.read()
    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT


async def pieces_of(served: Served, digest: str) -> list[nodes_pb2.AdapterPiece]:
    return [it async for it in served.nodes.FetchAdapter(request_for(digest))]


def request_for(digest: str) -> nodes_pb2.FetchAdapterRequest:
    return nodes_pb2.FetchAdapterRequest(digest=digest)


def large_adapter(directory: Path) -> Path:
    """One of two MiB and a bit."""
    directory.mkdir()
    (directory / CONFIG_FILE).write_text(json.dumps(CONFIG))
    end = (1 << 21) + 16
    tensors = {
        "model.q_proj.lora_A.weight": {"shape": [8, 1 << 17], "data_offsets": [0, 1 << 21]},
        "model.q_proj.lora_B.weight": {"shape": [1, 8], "data_offsets": [1 << 21, end]},
    }
    typed = {name: {"dtype": "BF16", **tensor} for name, tensor in tensors.items()}
    (directory / WEIGHTS_FILE).write_bytes(safetensors(typed, bytes(end)))
    return directory


async def test_a_node_gets_an_adapter_in_pieces_file_by_file(
    served: Served, tmp_path: Path
) -> None:
    source = large_adapter(tmp_path / "source")
    digest = served.contents.take_in(source, FamilyLimits()).digest
    pieces = await pieces_of(served, digest)
    files: dict[str, bytes] = {}
    name = ""
    for piece in pieces:
        name = piece.file or name
        files[name] = files.get(name, b"") + piece.data
    assert files == {name: (source / name).read_bytes() for name in CONTENT_FILES}
    assert list(files) == list(CONTENT_FILES)
    assert max(len(piece.data) for piece in pieces) == 1 << 20
    assert [piece.file for piece in pieces if piece.file] == list(CONTENT_FILES)


async def test_an_adapter_that_is_thrown_away_meanwhile_is_still_sent_whole(
    served: Served,
) -> None:
    digest = served.contents.take_in(SHIPPED, FamilyLimits()).digest
    pieces = aiter(served.nodes.FetchAdapter(request_for(digest)))
    received = len((await anext(pieces)).data)
    served.contents.remove(digest)
    async for piece in pieces:
        received += len(piece.data)
    assert received == sum((SHIPPED / name).stat().st_size for name in CONTENT_FILES)


@pytest.mark.parametrize("digest", ["", "0" * 64, "../../etc", "incoming", "x\n"])
async def test_an_adapter_that_nobody_registered_is_not_found(served: Served, digest: str) -> None:
    with pytest.raises(grpc.aio.AioRpcError, match="is stored: register it again") as caught:
        await pieces_of(served, digest)
    assert caught.value.code() is grpc.StatusCode.NOT_FOUND


async def test_an_adapter_that_cannot_be_read_is_told_apart(served: Served) -> None:
    digest = served.contents.take_in(SHIPPED, FamilyLimits()).digest
    directory = served.contents.directory_of(digest)
    assert directory is not None
    (directory / CONTENT_FILES[0]).unlink()
    (directory / CONTENT_FILES[0]).mkdir()
    with pytest.raises(grpc.aio.AioRpcError, match="Is a directory") as caught:
        await pieces_of(served, digest)
    assert caught.value.code() is grpc.StatusCode.UNAVAILABLE


async def test_where_none_can_be_looked_for_the_node_is_told_to_ask_again(served: Served) -> None:
    taken = served.contents.take_in(SHIPPED, FamilyLimits())
    directory = served.contents.directory_of(taken.digest) or pytest.fail("it is not stored")
    shutil.rmtree(directory.parent)
    directory.parent.write_text("in the way")
    with pytest.raises(grpc.aio.AioRpcError, match="Not a directory") as caught:
        await pieces_of(served, directory.name)
    assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
