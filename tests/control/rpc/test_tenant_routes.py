"""Gateways are told tenants, keys and their own shares, at once; and what they count is taken."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import grpc
import pytest

from penstock.control.managers.cluster_store import ClusterStore
from penstock.control.managers.fleet.gateway_reports import GatewayReports
from penstock.control.managers.fleet.gateway_signs import GatewaySigns
from penstock.control.managers.observe.explain import ExplainManager
from penstock.control.managers.routing.routes import RouteManager
from penstock.control.managers.tenancy.shares import ShareManager
from penstock.control.managers.tenancy.spend import SpendManager
from penstock.control.managers.tenancy.tenants import TenantManager
from penstock.control.managers.tenancy.usage import UsageManager
from penstock.control.managers.write import Write
from penstock.control.rpc.route_wire import RouteEncoder
from penstock.control.rpc.routes_service import RoutesService
from penstock.control.state.rollout.deployment import DeploymentName
from penstock.control.state.routing.snapshot import RouteSnapshot, routes_of
from penstock.control.state.tenancy.tenants import Degrade, Priority, TenantSpec
from penstock.control.state.tenancy.usage import Counts, UsageKey, UsageRow
from penstock.v1 import routes_pb2, routes_pb2_grpc
from tests.fakes.control_clock import ManualClock
from tests.fakes.control_store import MemoryStore
from tests.fakes.control_values import NOON, SECOND, deployment, replica

SPEC = TenantSpec(
    requests_per_minute=60,
    tokens_per_minute=1000,
    tokens_per_day=5000,
    usd_per_day=0.25,
    max_streams=4,
    models=("mini",),
    adapters=("pirate",),
    priority=Priority.HIGH,
    degrade=Degrade.NEVER,
    cache_salt="salty",
)


@dataclass(frozen=True, slots=True)
class Served:
    """A head's routes over gRPC, and what stands behind them."""

    cluster: ClusterStore
    tenants: TenantManager
    usage: UsageManager
    shares: ShareManager
    clock: ManualClock
    store: MemoryStore
    stub: Any

    async def watch(self, gateway: str) -> Any:
        """A gateway's stream of snapshots."""
        return self.stub.Watch(routes_pb2.WatchRoutesRequest(gateway_id=gateway))

    async def report(
        self, gateway: str, *usage: routes_pb2.UsageReport, under_way: int = 0
    ) -> None:
        """One report, after which the gateway ends."""
        stream, acme = self.stub.Report(), routes_pb2.TenantStreams(tenant="acme")
        acme.under_way = under_way
        await stream.write(
            routes_pb2.GatewayReport(
                gateway_id=gateway,
                at_ms=1,
                snapshot_version=2,
                instance=f"of {gateway}",
                usage=usage,
                streams=[acme],
            )
        )
        await stream.done_writing()
        await stream.read()


@pytest.fixture
async def served() -> AsyncIterator[Served]:
    clock, store = ManualClock(), MemoryStore()
    cluster = ClusterStore(store, clock)
    shares = ShareManager(cluster, clock)
    usage = UsageManager(cluster, store, shares, SpendManager(cluster, store, clock), clock)
    routes = RouteManager(cluster, clock)
    reports = GatewayReports(cluster, GatewaySigns(clock), clock)
    server = grpc.aio.server()
    service = RoutesService(routes, reports, usage, ExplainManager(cluster, clock))
    routes_pb2_grpc.add_RoutesServicer_to_server(service, server)  # type: ignore[no-untyped-call]
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    await usage.judge()
    await routes.open()
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel, asyncio.TaskGroup() as g:
        running = g.create_task(routes.run())
        stub = routes_pb2_grpc.RoutesStub(channel)  # type: ignore[no-untyped-call]
        yield Served(cluster, TenantManager(cluster, clock), usage, shares, clock, store, stub)
        running.cancel()
    await server.stop(None)


async def test_a_snapshot_after_the_other_says_what_it_would_say_alone(served: Served) -> None:
    stream = await served.watch("gw-1")
    await stream.read()
    await served.cluster.observe(
        lambda view: view.with_deployment(deployment()).with_replica(replica("r1")), "test"
    )
    await stream.read()
    other = replace(deployment(), generation=2)
    await served.cluster.observe(
        lambda view: view.with_deployment(other).with_replica(replica("r2")), "test"
    )
    told, routes = await stream.read(), routes_of(served.cluster.view())
    alone = RouteEncoder().message(RouteSnapshot(told.version, NOON, routes))
    assert [r.id for r in told.replicas] == ["r1", "r2"]
    assert [d.generation for d in told.deployments] == [2]
    assert (told.deployments, told.replicas) == (alone.deployments, alone.replicas)


async def test_a_tenant_is_told_with_every_field_and_its_keys(served: Served) -> None:
    stream = await served.watch("gw-1")
    first = await stream.read()
    assert (list(first.tenants), first.keys_required) == ([], False)
    await served.tenants.create("acme", SPEC, Write("test"))
    (acme,) = (await stream.read()).tenants
    assert (acme.id, acme.requests_per_minute, acme.tokens_per_minute) == ("acme", 60, 1000)
    assert (acme.tokens_per_day, acme.nanousd_per_day) == (5000, 250_000_000)
    assert (acme.max_streams, acme.cache_salt, acme.degrade_never) == (4, "salty", True)
    assert acme.fallbacks_listed
    assert (list(acme.models), list(acme.adapters)) == (["mini"], ["pirate"])
    assert acme.priority == routes_pb2.PRIORITY_CLASS_HIGH
    assert (acme.quota_used_up, acme.quota_resets_at_ms) == (False, _ms(12))
    assert (acme.share_permille, acme.max_streams_here) == (1000, 0)
    assert list(acme.keys) == []
    end = NOON + timedelta(hours=1)
    made, secret, _ = await served.tenants.create_key(
        "acme", "ci", end, Write("test"), tokens_per_day=7, usd_per_day=1.5
    )
    snapshot = await stream.read()
    ((key,),) = [tenant.keys for tenant in snapshot.tenants]
    assert snapshot.keys_required
    assert (key.tokens_per_day, key.nanousd_per_day) == (7, 1_500_000_000)
    assert (key.id, key.expires_at_ms) == (made.id, _ms(1))
    assert key.sha256 == hashlib.sha256(secret.encode()).digest()
    assert secret.encode() not in snapshot.SerializeToString()
    await served.tenants.revoke_key("acme", made.id, Write("test"))
    snapshot = await stream.read()
    assert ([list(tenant.keys) for tenant in snapshot.tenants], snapshot.keys_required) == (
        [[]],
        True,
    )
    assert list(snapshot.ended_keys) == []
    other, _, _ = await served.tenants.create_key("acme", "", None, Write("test"))
    await stream.read()
    await served.tenants.revoke_key("acme", other.id, Write("test"), end_streams=True)
    assert list((await stream.read()).ended_keys) == [other.id]


def _ms(hours: int) -> int:
    """Milliseconds since 1970, so many hours after noon."""
    return int((NOON + timedelta(hours=hours)).timestamp() * 1000)


async def test_tenants_have_salts_of_their_own_unless_they_share_one(served: Served) -> None:
    for name, salt in (("a", None), ("b", None), ("c", "")):
        await served.tenants.create(name, TenantSpec(cache_salt=salt), Write("test"))
    snapshot = await (await served.watch("gw-1")).read()
    a, b, c = (tenant.cache_salt for tenant in snapshot.tenants)
    assert a
    assert b
    assert a != b
    assert c == ""


async def test_each_gateway_is_told_its_own_share(served: Served) -> None:
    await served.tenants.create("acme", SPEC, Write("test"))
    await served.report("gw-1", under_way=3)
    await served.report("gw-2")
    served.clock.advance(SECOND)
    await served.shares.tell()
    told = {}
    for gateway in ("gw-1", "gw-2", "new"):
        snapshot = await (await served.watch(gateway)).read()
        (acme,) = snapshot.tenants
        told[gateway] = (acme.share_permille, acme.max_streams_here)
    assert told == {"gw-1": (500, 2), "gw-2": (500, 1), "new": (83, 1)}


async def test_what_a_gateway_says_last_is_stored_before_it_is_answered(served: Served) -> None:
    row = routes_pb2.UsageReport(
        tenant="acme",
        key_id="key_1",
        deployment="mini",
        adapter="pirate@1",
        requests=3,
        rejected=1,
        prompt_tokens=30,
        completion_tokens=12,
        cached_tokens=16,
        cost_nanousd=5,
    )
    await served.report("gw-1", row)
    await served.report("gw-1", row)
    day = NOON.date()
    assert await served.store.usage(day, day) == [
        UsageRow(day, UsageKey("acme", "key_1", "mini", "pirate@1"), Counts(3, 1, 30, 12, 16, 5))
    ]


async def read(served: Served) -> None:
    """What the head does four times a second."""
    await served.usage.flush()
    await served.usage.judge()


async def test_a_gateway_that_takes_replies_is_told_what_all_counted_today(
    served: Served,
) -> None:
    def row(key: str, tokens: int) -> routes_pb2.UsageReport:
        return routes_pb2.UsageReport(tenant="acme", key_id=key, prompt_tokens=tokens)

    stream = served.stub.Report()
    await stream.write(routes_pb2.GatewayReport(gateway_id="me", at_ms=1, takes_replies=True))
    told = [await stream.read()]
    for more in ([row("key_1", 30), row("key_2", 1)], [], [row("key_1", 5)]):
        if more:
            await served.report(f"gw-{len(told)}", *more)
        await read(served)
        told.append(await stream.read())
    assert [list(reply.usage) for reply in told] == [
        [],
        [row("key_1", 30), row("key_2", 1)],
        [],
        [row("key_1", 35)],
    ]
    assert [reply.whole for reply in told] == [True, False, False, False]
    assert {(reply.as_of_ms, reply.day_ends_at_ms) for reply in told} == {(_ms(0), _ms(12))}
    served.clock.advance(timedelta(hours=12))
    await read(served)
    reply = await stream.read()
    assert (reply.whole, list(reply.usage)) == (True, [])
    assert (reply.as_of_ms, reply.day_ends_at_ms) == (_ms(12), _ms(36))


async def test_each_gateway_is_told_what_others_reserved_and_what_of_the_sums_is_its_own(
    served: Served,
) -> None:
    def report(gateway: str, used: int, reserved: int) -> routes_pb2.GatewayReport:
        hold = routes_pb2.DayHold(tenant="acme", used_tokens=used, reserved_tokens=reserved)
        row = routes_pb2.UsageReport(tenant="acme", key_id="k", prompt_tokens=used)
        return routes_pb2.GatewayReport(
            gateway_id=gateway,
            instance=f"of {gateway}",
            at_ms=1,
            takes_replies=True,
            number=used,
            usage=[row],
            holds=[hold],
        )

    streams = {name: served.stub.Report() for name in ("gw-1", "gw-2")}
    for name, stream in streams.items():
        await stream.write(report(name, 10 if name == "gw-1" else 3, 200))
        (await stream.read()).whole  # noqa: B018
    await read(served)
    for name, stream in streams.items():
        reply = await stream.read()
        ((hold,),) = [list(reply.holds)]
        assert hold.used_tokens == (10 if name == "gw-1" else 3)
        assert hold.reserved_tokens == 200
        assert reply.stored == hold.used_tokens
        assert sum(row.prompt_tokens for row in reply.usage) == 13
    await streams["gw-1"].write(report("gw-1", 210, 0))
    await streams["gw-1"].done_writing()
    while await streams["gw-1"].read() is not grpc.aio.EOF:  # type: ignore[attr-defined]
        pass
    await read(served)
    reply = await streams["gw-2"].read()
    ((hold,),) = [list(reply.holds)]
    assert (hold.used_tokens, hold.reserved_tokens) == (3, 0)
    assert [row.prompt_tokens for row in reply.usage] == [213]
    served.clock.advance(timedelta(hours=12))
    await read(served)
    reply = await streams["gw-2"].read()
    assert reply.whole
    assert [hold.used_tokens for hold in reply.holds] == [3], "what it has forgotten is told again"


async def test_gateways_are_told_what_deployments_spent_and_have_reserved(served: Served) -> None:
    hold = routes_pb2.DayHold(deployment="mini", used_tokens=10, reserved_tokens=20)
    rows = [
        routes_pb2.UsageReport(tenant=tenant, deployment=name, prompt_tokens=5, cost_nanousd=7)
        for tenant in ("acme", "other")
        for name in ("", "mini")
    ]
    report = routes_pb2.GatewayReport(
        gateway_id="gw-1", instance="i", at_ms=1, takes_replies=True, usage=rows, holds=[hold]
    )
    stream, other = served.stub.Report(), served.stub.Report()
    await stream.write(report)
    assert not (await stream.read()).spent
    await read(served)
    reply = await stream.read()
    spent = [(row.deployment, row.prompt_tokens, row.cost_nanousd) for row in reply.spent]
    assert spent == [("", 10, 14), ("mini", 10, 14)]
    (own,) = reply.holds
    assert (own.deployment, own.used_tokens, own.reserved_tokens) == ("mini", 10, 0)
    await other.write(
        routes_pb2.GatewayReport(gateway_id="gw-2", instance="j", at_ms=1, takes_replies=True)
    )
    reply = await other.read()
    assert [row.deployment for row in reply.spent] == ["", "mini"]
    assert [(hold.deployment, hold.reserved_tokens) for hold in reply.holds] == [("mini", 20)]
    await read(served)
    assert not (await stream.read()).spent, "what has not changed is not told again"


async def test_a_key_is_revoked_also_while_other_routes_are_withheld(served: Served) -> None:
    await served.tenants.create("acme", SPEC, Write("test"))
    key, *_ = await served.tenants.create_key("acme", "", None, Write("test"))
    one = deployment()
    await served.cluster.observe(
        lambda view: view.with_deployment(one).with_replica(replica("a")), "test"
    )
    stream = await served.watch("gw-1")
    while not (await stream.read()).replicas:
        pass
    foreign = replica("b", uid="unknown", deployment="other")
    await served.cluster.observe(lambda view: view.with_replica(foreign), "test")
    await served.cluster.observe(
        lambda view: view.without_deployment(DeploymentName("mini")), "test"
    )
    await served.tenants.revoke_key("acme", key.id, Write("test"))
    snapshot = await stream.read()
    assert [list(tenant.keys) for tenant in snapshot.tenants] == [[]]
    assert [route.id for route in snapshot.replicas] == ["a"]
