"""Nodes are emptied, requests released, and the trail of changes read."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import asdict, replace

import pytest

from penstock.control.admin.app import admin_app
from penstock.control.admin.audit_api import page
from penstock.control.state.fleet.liveness import ObservedNode
from penstock.control.state.fleet.replica import (
    Evidence,
    NodeId,
    NodeState,
    ReplicaStart,
    Resources,
    StartKind,
    StartStage,
    WarmPool,
)
from penstock.control.state.problems import Problem, ProblemKind
from penstock.control.state.routing.suspects import EngineDeath, Suspect, merged
from penstock.control.state.tenancy.tokens import Role
from penstock.control.store.store import AuditEntry, Key
from tests.control.admin.app_harness import Admin, assert_problem, client_of, running_admin
from tests.fakes.control_values import NOON, node, replica

MINI = {"name": "mini", "engine": "simulated", "model": "penstock-mini"}
FINGERPRINT = bytes(range(32))
QUARANTINE = "/admin/v1/quarantine"


@pytest.fixture
async def admin() -> AsyncIterator[Admin]:
    async with running_admin() as admin:
        yield admin


async def suspect(admin: Admin, *deaths: EngineDeath, until_ms: int = 5_000) -> None:
    one = Suspect(FINGERPRINT, "mini", "u1", "/v1/completions", deaths, until_ms)
    await admin.cluster.observe(
        lambda view: replace(view, suspects=merged(view.suspects, [one])), "test"
    )


async def test_a_drained_node_says_so_until_it_is_undone(admin: Admin) -> None:
    await admin.cluster.observe(lambda view: view.with_node(node("n1")), "test")
    url = "/admin/v1/nodes/n1/drain"
    headers = await admin.headers(Role.OPERATOR)
    assert (await admin.client.put(url, headers=headers)).json()["draining"] is True
    entry, *_ = await admin.store.audit(1)
    assert (entry.who, entry.what) == ("some-operator", "drain node n1")
    assert (await admin.client.delete(url, headers=headers)).json()["draining"] is False
    hurried = (await admin.client.put(f"{url}?hand_over=true", headers=headers)).json()
    assert (hurried["draining"], hurried["hand_over"]) == (True, True)
    entry, *_ = await admin.store.audit(1)
    assert entry.what == "drain node n1, streams handed over at once"
    assert (await admin.client.delete(url, headers=headers)).json()["hand_over"] is False
    viewer = await admin.headers(Role.VIEWER)
    assert_problem(await admin.client.put(url, headers=viewer), 403)
    assert_problem(await admin.client.put("/admin/v1/nodes/none/drain"), 404, "'none'")


async def test_how_replicas_were_started_and_what_waits_on_a_node_is_shown(admin: Admin) -> None:
    start = ReplicaStart(StartKind.WARM, "", (StartStage("claim", 40),))
    one = replica("r1")
    one = replace(one, status=replace(one.status, start=start))
    await admin.cluster.observe(lambda v: v.with_node(node("n1")).with_replica(one), "test")
    (told,) = (await admin.client.get("/admin/v1/replicas")).json()
    stages = [{"name": "claim", "ms": 40}]
    assert told["start"] == {"kind": "warm", "reason": "", "stages": stages}
    assert (await admin.client.get("/admin/v1/nodes/n1")).json()["warm_pool"] is None
    pool = WarmPool(2, 1, "forks", 3, 4, 5)
    observed = ObservedNode(admin.clock.steady(), Resources(), pool)
    admin.cluster.liveness.nodes[NodeId("n1")] = observed
    (shown,) = (await admin.client.get("/admin/v1/nodes")).json()
    assert shown["warm_pool"] == asdict(pool)


async def test_a_node_is_forgotten_once_there_is_no_sign_of_life_of_it(admin: Admin) -> None:
    url, live = "/admin/v1/nodes/n1", admin.cluster.liveness
    answering = replica("r1").judged(Evidence.ANSWERS, NOON)
    await admin.cluster.observe(
        lambda view: view.with_node(node("n1")).with_replica(answering), "test"
    )
    live.nodes[NodeId("n1")] = ObservedNode(admin.clock.steady(), Resources())
    assert_problem(await admin.client.delete(url), 409, "is heard")
    live.nodes.clear()
    await admin.cluster.observe(lambda view: view.with_node(node("n1", NodeState.LOST)), "test")
    assert_problem(await admin.client.delete(url), 409, "r1 answered")
    await admin.cluster.observe(lambda view: view.with_replica(replica("r1")), "test")
    assert (await admin.client.delete(url)).status_code == 204
    view = admin.cluster.view()
    assert (dict(view.nodes), dict(view.replicas)) == ({}, {})
    assert_problem(await admin.client.delete(url), 404, "'n1'")


async def test_what_is_wrong_is_one_list(admin: Admin) -> None:
    wrong = Problem(ProblemKind.STORE, "head", "the store failed")
    app = admin_app(replace(admin.services, problems=lambda: [wrong]), "1")
    async with client_of(app) as client:
        told = (await client.get("/admin/v1/status")).json()
    expected = {"kind": "store", "subject": "head", "text": "the store failed"}
    assert told == {"problems": [expected]}


async def test_a_quarantined_request_is_listed_and_released(admin: Admin) -> None:
    await suspect(admin, EngineDeath("r1", 1_000, "gw-1"), EngineDeath("r2", 90_000, "gw-1"))
    headers = await admin.headers(Role.VIEWER)
    (found,) = (await admin.client.get(QUARANTINE, headers=headers)).json()
    assert found["fingerprint"] == FINGERPRINT.hex()
    assert (found["quarantined"], found["deployment"]) == (True, "mini")
    assert [death["replica_id"] for death in found["deaths"]] == ["r1", "r2"]
    assert found["until"] == "1970-01-01T00:00:05Z"
    url = f"{QUARANTINE}/{FINGERPRINT.hex()}"
    assert_problem(await admin.client.delete(url, headers=headers), 403)
    assert (await admin.client.delete(url)).status_code == 204
    assert (await admin.client.get(QUARANTINE)).json() == []
    assert_problem(await admin.client.delete(url), 404)


@pytest.mark.parametrize("text", ["x", "ab", "zz" * 32, FINGERPRINT.hex().upper()])
async def test_a_fingerprint_that_is_none_is_refused(admin: Admin, text: str) -> None:
    assert_problem(await admin.client.delete(f"{QUARANTINE}/{text}"), 422, "64 hexadecimal")


async def test_a_gateway_whose_clock_is_mad_hides_no_suspect(admin: Admin) -> None:
    await suspect(admin, EngineDeath("r1", -(2**62), "gw-1"), until_ms=2**62)
    (found,) = (await admin.client.get(QUARANTINE)).json()
    assert found["until"].startswith("9999-12-31")


async def test_the_trail_is_read_page_by_page(admin: Admin) -> None:
    for replicas in range(1, 6):
        body = {**MINI, "replicas": replicas}
        del body["name"]
        await admin.client.put("/admin/v1/deployments/mini", json=body)
    seen: list[int] = []
    url = "/admin/v1/audit?limit=2"
    reply = (await admin.client.get(url)).json()
    while True:
        seen += [entry["version"] for entry in reply["entries"]]
        if reply["next"] is None:
            break
        reply = (await admin.client.get(f"{url}&before={reply['next']}")).json()
    assert seen == sorted(seen, reverse=True)
    assert len(set(seen)) == len(seen) == len(await admin.store.audit(100))


async def test_the_trail_leaves_out_what_the_head_was_told_unless_it_is_asked_for(
    admin: Admin,
) -> None:
    await admin.cluster.observe(lambda view: view.with_node(node("n1")), "heartbeat of node n1")
    await admin.client.post("/admin/v1/tokens", json={"name": "alice", "role": "viewer"})
    url = "/admin/v1/audit"
    whole = (await admin.client.get(f"{url}?seen=true")).json()["entries"]
    usual = (await admin.client.get(url)).json()["entries"]
    assert [(e["who"], e["what"]) for e in whole if e not in usual] == [
        ("head (seen)", "heartbeat of node n1")
    ]
    assert "create token alice of role viewer" in {entry["what"] for entry in usual}


async def test_the_trail_shows_no_digest_of_a_token(admin: Admin) -> None:
    await admin.client.post("/admin/v1/tokens", json={"name": "alice", "role": "viewer"})
    reply = await admin.client.get("/admin/v1/audit")
    assert "alice" in reply.text
    assert "digest" not in reply.text.replace("template_digest", "")


def entry(version: int) -> AuditEntry:
    return AuditEntry(version, NOON, "x", "y", Key("replica", "r"), None, None)


def test_a_page_does_not_cut_a_transaction_in_two() -> None:
    cut = page([entry(v) for v in (9, 9, 8, 7)], limit=4)
    assert [e.version for e in cut.entries] == [9, 9, 8]
    assert cut.next == 8
    whole = page([entry(v) for v in (9, 9, 8)], limit=4)
    assert (len(whole.entries), whole.next) == (3, None)
    long = page([entry(9)] * 4, limit=4)
    assert (len(long.entries), long.next) == (4, 9)


@pytest.mark.parametrize("query", ["limit=0", "limit=1001", "limit=x", "before=-1"])
async def test_a_page_that_cannot_be_is_refused(admin: Admin, query: str) -> None:
    assert_problem(await admin.client.get(f"/admin/v1/audit?{query}"), 422)
