"""What memory replicas would take, and take, as the admin API tells it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from penstock.control.errors import NodeUnreachable
from penstock.control.state.fleet.liveness import ObservedNode
from penstock.control.state.fleet.memory import FitLine, FitVerdict, MemoryFit, ReplicaMemory
from penstock.control.state.fleet.replica import Device, NodeId, Resources
from penstock.control.state.tenancy.tokens import Role
from tests.control.admin.app_harness import Admin, assert_problem, running_admin
from tests.fakes.control_values import node, replica

LARGE = MemoryFit(
    FitVerdict.TOO_LARGE,
    (FitLine("weights", 90, "in files"), FitLine("KV cache", 20)),
    needed_bytes=110,
    free_bytes=100,
    reason="10 are missing",
    advice=("max_model_len=8192",),
)
DOCUMENT = {"penstock": "v1", "kind": "deployment", "name": "chat", "model": "m"}
SPEC = {"model": "m", "engine_args": {"dtype": "float32"}, "max_adapters": 2}


@pytest.fixture
async def admin() -> AsyncIterator[Admin]:
    async with running_admin() as admin:
        await admin.cluster.observe(lambda view: view.with_node(node("n1")), "test")
        admin.fits.told = LARGE
        yield admin


async def applied(admin: Admin, **changes: Any) -> Any:
    body = {"documents": [{**DOCUMENT, **changes}]}
    reply = await admin.client.post("/admin/v1/apply", json=body)
    assert reply.status_code == 200, reply.text
    return reply.json()["steps"][0]["memory"]


async def test_a_plan_tells_the_sum_of_what_is_new(admin: Admin) -> None:
    told = await applied(admin)
    assert told["verdict"] == "too_large"
    assert told["lines"][0] == {"what": "weights", "bytes": 90, "note": "in files"}
    assert (told["node"], told["advice"]) == ("n1", ["max_model_len=8192"])
    assert await applied(admin, replicas=2) is None
    assert (await applied(admin, engine_args={"dtype": "float32"}))["needed_bytes"] == 110
    assert [order.engine_args for order in admin.fits.asked] == [(), (("dtype", "float32"),)]


async def test_an_agent_that_does_not_answer_fails_no_plan(admin: Admin) -> None:
    admin.fits.error = NodeUnreachable("the node agent at n1:7000 did not tell")
    told = await applied(admin)
    assert (told["verdict"], told["node"]) == ("unknown", "n1")
    assert "did not tell" in told["reason"]


async def test_no_node_is_asked_where_none_has_room(admin: Admin) -> None:
    await admin.cluster.observe(lambda view: view.without_node(NodeId("n1")), "test")
    assert (await applied(admin))["reason"] == "no node has room for it now"
    assert (await applied(admin, name="other", engine="simulated"))["verdict"] == "unknown"
    assert admin.fits.asked == []


async def test_a_dry_run_of_a_deployment_tells_it_and_a_real_change_asks_nobody(
    admin: Admin,
) -> None:
    url = "/admin/v1/deployments/chat"
    told = (await admin.client.put(url, json=SPEC, params={"dry_run": "true"})).json()
    assert told["memory"]["reason"] == "10 are missing"
    assert (admin.fits.asked[0].max_adapters, admin.fits.asked[0].max_adapter_rank) == (2, 16)
    assert (await admin.client.put(url, json=SPEC)).json()["memory"]["verdict"] == "unknown"
    assert (await admin.client.get(url)).json()["memory"]["lines"] == []
    assert len(admin.fits.asked) == 1


async def test_a_node_is_asked_for_the_sum_of_a_model(admin: Admin) -> None:
    url = "/admin/v1/nodes/n1/fit"
    asked = {"model": "m", "engine_arg": ["dtype=float32", "max_num_seqs=4"]}
    headers = await admin.headers(Role.OPERATOR)
    told = await admin.client.get(url, params=asked, headers=headers)
    assert told.json()["needed_bytes"] == 110
    assert admin.fits.asked[0].engine_args == (("dtype", "float32"), ("max_num_seqs", "4"))
    viewer = await admin.headers(Role.VIEWER)
    assert_problem(await admin.client.get(url, params=asked, headers=viewer), 403)
    assert_problem(await admin.client.get("/admin/v1/nodes/no/fit?model=m"), 404, "'no'")
    assert (await admin.client.get(url, params={"model": " "})).status_code == 422


async def test_what_replicas_and_accelerators_take_is_listed(admin: Admin) -> None:
    await admin.cluster.observe(lambda view: view.with_replica(replica("r1")), "test")
    (shown,) = (await admin.client.get("/admin/v1/replicas")).json()
    assert (shown["memory_bytes"], shown["device_memory_bytes"]) == (0, 0)
    told = Resources(
        devices=(Device("GPU-0", "NVIDIA H200", 100, 40),), replicas=(ReplicaMemory("r1", 7, 40),)
    )
    admin.cluster.liveness.nodes[NodeId("n1")] = ObservedNode(admin.clock.steady(), told)
    (shown,) = (await admin.client.get("/admin/v1/replicas")).json()
    assert (shown["memory_bytes"], shown["device_memory_bytes"]) == (7, 40)
    (machine,) = (await admin.client.get("/admin/v1/nodes")).json()
    assert machine["devices"][0]["memory_used_bytes"] == 40
