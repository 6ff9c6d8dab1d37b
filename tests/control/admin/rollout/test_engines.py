"""Engines over the admin API: from the request to ready, and to their end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from penstock.control.managers.cluster_store import ClusterStore
from penstock.control.state.cluster import Gateway, GatewayReport, GatewayState
from penstock.control.state.fleet.replica import ReplicaState
from penstock.control.state.rollout.engines import swept
from tests.control.admin.app_harness import assert_problem, running_admin
from tests.control.admin.rollout.engine_world import WARM, Engines, running_engines
from tests.fakes.control_values import NOON, node
from tests.fakes.control_waiting import eventually

READY, STARTING = ReplicaState.READY, ReplicaState.STARTING
SECOND = timedelta(seconds=1)


@pytest.fixture
async def engines() -> AsyncIterator[Engines]:
    async with running_engines() as running:
        yield running


async def test_an_engine_is_told_once_it_is_ready_with_how_and_how_long(engines: Engines) -> None:
    async with asyncio.TaskGroup() as tasks:
        asked = tasks.create_task(engines.post(name="scratch", ttl_s=60, wait=True))
        await engines.is_there("scratch")
        engines.admin.clock.advance(timedelta(milliseconds=640))
        await engines.replica("scratch", STARTING)
        assert not asked.done()
        await engines.replica("scratch", READY, start=WARM)
    reply = await asked
    assert reply.status_code == 201, reply.text
    told = reply.json()
    uid = engines.admin.cluster.view().deployment("scratch").uid
    assert told == {
        "id": f"eng-{uid[:12]}",
        "name": "scratch",
        "model": "penstock-mini",
        "engine": "simulated",
        "engine_args": {},
        "base_url": "http://127.0.0.1:8080/v1",
        "state": "ready",
        "message": "",
        "start": "warm",
        "start_reason": "",
        "ready_ms": 640,
        "stages": [{"name": "claim", "ms": 12}, {"name": "load", "ms": 200}],
        "adapters": [],
        "replica": "r1",
        "by": "admin",
        "created_at": "2026-01-02T12:00:00Z",
        "expires_at": "2026-01-02T12:01:00Z",
    }
    assert reply.headers["location"] == f"/admin/v1/engines/{told['id']}"
    for name in (told["id"], "scratch"):
        assert (await engines.get(f"engines/{name}")).json() == told


async def test_who_does_not_wait_is_told_that_it_starts(engines: Engines) -> None:
    told = await engines.started()
    assert told["name"] == told["id"]
    assert (told["state"], told["start"], told["ready_ms"]) == ("starting", None, None)
    assert told["message"] == "waiting for 1 of 1 replicas"
    assert await engines.names() == [told["id"]]


async def test_it_is_ready_only_when_gateways_route_to_it(engines: Engines) -> None:
    cluster, routes = engines.admin.cluster, engines.admin.services.routes

    async def reports(version: int) -> None:
        said = GatewayReport(NOON, version)
        gateway = Gateway("g1", GatewayState.REMOTE, report=said, reporting=True)
        await cluster.observe(lambda view: view.with_gateway(gateway), "test")

    async def is_routed() -> bool:
        return any(each.state is READY for each in routes.current().routes.replicas)

    await reports(routes.current().version)
    async with asyncio.TaskGroup() as tasks:
        asked = tasks.create_task(engines.post(name="scratch", wait=True))
        await engines.is_there("scratch")
        await engines.replica("scratch", READY)
        await eventually(is_routed, "its route")
        assert not asked.done()
        await reports(routes.current().version)
    assert (await asked).status_code == 201


async def test_one_that_cannot_start_is_a_problem_with_its_cause_and_leaves_nothing(
    engines: Engines,
) -> None:
    key = {"idempotency-key": "k-1"}
    async with asyncio.TaskGroup() as tasks:
        asked = tasks.create_task(engines.post(name="scratch", wait=True, headers=key))
        await engines.is_there("scratch")
        await engines.replica("scratch", ReplicaState.FAILED, last_error="no such model")
    assert_problem(await asked, 409, "'scratch' did not get ready: r1: no such model")
    assert engines.admin.cluster.view().deployments == {}
    again = await engines.post(name="scratch", wait=True, headers=key)
    assert again.headers["idempotent-replayed"] == "true"
    assert again.text == (await asked).text
    await engines.started(name="scratch")


async def test_one_that_ended_is_waited_for_once_more(engines: Engines) -> None:
    async with asyncio.TaskGroup() as tasks:
        asked = tasks.create_task(engines.post(name="scratch", wait=True))
        await engines.is_there("scratch")
        await engines.replica("scratch", ReplicaState.BACKOFF, crashes=1, last_error="once")
        await engines.replica("scratch", STARTING, crashes=1, last_error="once")
        assert not asked.done()
        await engines.replica("scratch", ReplicaState.BACKOFF, crashes=2, last_error="twice")
    assert_problem(await asked, 409, "twice")


async def test_where_no_node_could_take_it_nothing_is_begun() -> None:
    key = {"idempotency-key": "k-1"}
    async with running_engines(nodes=0) as engines:
        refused = await engines.post(name="scratch", headers=key)
        assert_problem(refused, 503, "no engine is started: no node is ready: start one with")
        assert engines.admin.cluster.view().deployments == {}
        await engines.admin.cluster.observe(lambda view: view.with_node(node()), "test")
        assert (await engines.post(name="scratch", headers=key)).status_code == 202


async def test_one_that_is_ended_while_somebody_waits_says_so(engines: Engines) -> None:
    async with asyncio.TaskGroup() as tasks:
        asked = tasks.create_task(engines.post(name="scratch", wait=True))
        await engines.is_there("scratch")
        reply = await engines.admin.client.delete("/admin/v1/engines/scratch")
        assert reply.status_code == 204
        await engines.started(name="scratch")  # a namesake is another one
    assert_problem(await asked, 409, "'scratch' was ended before it was ready")


async def test_a_caller_that_goes_away_leaves_it_to_its_time(engines: Engines) -> None:
    async with asyncio.TaskGroup() as tasks:
        asked = tasks.create_task(engines.post(name="scratch", ttl_s=60, wait=True))
        await engines.is_there("scratch")
        asked.cancel()
    assert await engines.names() == ["scratch"]
    engines.admin.clock.advance(60 * SECOND)
    await engines.is_gone("scratch")


async def test_it_ends_when_its_time_is_over_and_not_before(engines: Engines) -> None:
    await engines.started(name="short", ttl_s=60)
    await engines.started(name="long", ttl_s=61)
    await engines.started(name="ever", ttl_s=0)
    assert (await engines.get("engines/ever")).json()["expires_at"] is None
    view, clock = engines.admin.cluster.view(), engines.admin.clock
    assert swept(view, NOON + 60 * SECOND - timedelta(microseconds=1)) == (view, "")
    clock.advance(60 * SECOND)
    await engines.is_gone("short")
    assert await engines.names() == ["ever", "long"]
    told = [entry.what for entry in await engines.admin.store.audit(5)]
    assert "end engine short: its time is over" in told
    clock.advance(timedelta(days=400))
    await engines.is_gone("long")
    assert await engines.names() == ["ever"]


async def test_the_next_head_knows_when_it_ends(engines: Engines) -> None:
    await engines.started(name="scratch", ttl_s=60)
    await engines.replica("scratch", READY)

    async def is_noted() -> bool:
        found = await engines.get("engines/scratch")
        return bool(found.json()["ready_ms"])

    await eventually(is_noted, "how long it took")
    successor = ClusterStore(engines.admin.store, engines.admin.clock)
    await successor.restore()
    view = successor.view()
    assert view.deployment("scratch") == engines.admin.cluster.view().deployment("scratch")
    assert swept(view, NOON + 59 * SECOND) == (view, "")
    assert swept(view, NOON + 60 * SECOND)[0].deployments == {}


async def test_a_head_that_has_not_looked_around_yet_ends_nothing() -> None:
    async with running_admin() as admin, asyncio.TaskGroup() as tasks:
        await admin.cluster.observe(lambda view: view.with_node(node()), "test")
        engines = Engines(admin)
        await engines.started(name="scratch", ttl_s=60)
        admin.clock.advance(61 * SECOND)
        loop = tasks.create_task(admin.services.engines.run())
        await engines.started(name="other")  # which the loop would have been told of
        assert await engines.names() == ["other", "scratch"]
        admin.services.engines.open()
        await engines.is_gone("scratch")
        loop.cancel()
