"""Canaries in the admin API: started, shown, moved, ended, and what nobody else may move."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from penstock.control.state.canary.canary import Counted, Edge
from penstock.control.state.canary.counts import ArmCounts, Counts, Reading
from penstock.control.state.cluster import ClusterView
from penstock.control.state.shadow.shadows import Compared
from penstock.control.state.tenancy.tokens import Role
from tests.control.admin.adapters.test_adapters import PIRATE
from tests.control.admin.app_harness import Admin, assert_problem, running_admin
from tests.fakes.control_values import in_service

API = "/admin/v1"
CANARIES = f"{API}/canaries"
NEXT = f"{CANARIES}/next"
ASKED = {"name": "next", "target": "chat", "candidate": "small"}
PIRATES = {"name": "pirates", "target": "chat:pirate", "candidate": "pirate@2"}
SPEC = {"engine": "simulated", "model": "penstock-mini", "max_adapters": 2}
SMALL = {"engine": "simulated", "model": "tiny"}
ABORT = {"abort_canary": "true"}


@pytest.fixture
async def admin() -> AsyncIterator[Admin]:
    async with running_admin() as admin:
        for name, spec in (("chat", SPEC), ("small", SMALL), ("other", SMALL)):
            await ask(admin, "PUT", f"/deployments/{name}", spec)
        for version in ("1", "2"):
            await ask(admin, "POST", "/adapters", {**PIRATE, "base": "chat", "version": version})
        await ask(admin, "PUT", "/aliases/chat/pirate", {"target": "pirate@1"})
        yield admin


async def ask(admin: Admin, method: str, path: str, body: Any = None, **params: str) -> Any:
    reply = await admin.client.request(method, API + path, json=body, params=params)
    assert reply.is_success, reply.text
    return reply.json() if reply.content else None


async def start(admin: Admin, **more: Any) -> dict[str, Any]:
    return dict(await ask(admin, "POST", "/canaries", {**ASKED, **more}))


async def shown(admin: Admin, name: str = "next") -> dict[str, Any]:
    return dict(await ask(admin, "GET", f"/canaries/{name}"))


async def test_a_canary_is_started_listed_paused_resumed_aborted_and_deleted(admin: Admin) -> None:
    made = await start(admin)
    assert {name: made[name] for name in ASKED} == ASKED
    assert [each["permille"] for each in made["steps"]] == [10, 50, 250, 500, 1000]
    assert made["guards"]["errors"] == {"ratio": 1.5, "margin": 0.01}
    assert (made["state"], made["step"], made["permille"]) == ("running", 1, 0)
    assert (made["stable_arm"], made["candidate_arm"]) == ("chat", "small")
    assert await ask(admin, "GET", "/canaries") == [made]
    for verb, state in (("pause", "paused"), ("resume", "running"), ("abort", "aborted")):
        assert (await ask(admin, "POST", f"/canaries/next/{verb}"))["state"] == state
    assert (await shown(admin))["ended_at"]
    await ask(admin, "DELETE", "/canaries/next")
    assert_problem(await admin.client.get(NEXT), 404, "no canary 'next'")
    trail = [entry.what for entry in await admin.store.audit(5)]
    assert trail == [f"{w} canary next" for w in ("delete", "abort", "resume", "pause", "start")]


async def test_guards_are_said_in_groups_and_what_is_not_said_has_its_default(admin: Admin) -> None:
    made = await start(admin, guards={"errors": {"ratio": 3}, "warmup_requests": 5})
    assert made["guards"]["errors"] == {"ratio": 3.0, "margin": 0.01}
    assert (made["guards"]["warmup_requests"], made["guards"]["ttft"]) == (5, {"margin": 0.05})


async def test_both_arms_are_shown_with_what_each_guard_says(admin: Admin) -> None:
    made = await start(admin, steps=[{"permille": 100, "min_sessions": 500}])
    await admin.cluster.observe(lambda view: counted(view, made["uid"]), "test")
    told = await shown(admin)
    stable, candidate = told["arms"]["stable"], told["arms"]["candidate"]
    assert (stable["name"], candidate["name"]) == ("chat", "small")
    assert (stable["sessions"], candidate["bad_sessions"]) == (900, 2)
    assert candidate["errors"] == {"timeout": 2}
    assert candidate["finishes"] == {"length": 3, "stop": 95}
    assert candidate["total"]["sessions"] == 98
    assert 950 < candidate["total"]["p50_ms"] < 1100
    assert candidate["ttft"] == {"sessions": 0, "p50_ms": 0.0, "p90_ms": 0.0}
    assert (candidate["saved"], candidate["refused"]) == (2, 1)
    errors = next(each for each in told["findings"] if each["guard"] == "errors")
    assert (errors["candidate_sessions"], errors["candidate"]) == (100, 0.02)
    assert errors["evidence"] < errors["limit"]
    assert told["silent"] == ["gateway gw-1 has not been heard of"]


def counted(view: ClusterView, uid: str) -> ClusterView:
    """With a share in the routes, and what one gateway counted of it."""
    canary = replace(view.canaries.canary("next"), weighted=True)
    stable = ArmCounts(sessions=900, answered_sessions=900, total=((128, 900),), requests=900)
    candidate = ArmCounts(
        sessions=100,
        bad_sessions=2,
        errors=(("timeout", 2),),
        answered_sessions=98,
        bad_finishes=3,
        finishes=(("length", 3), ("stop", 95)),
        total=((128, 98),),
        requests=100,
        saved=2,
        refused=1,
    )
    reading = Reading("gw-1", "i1", view.deployment("chat").created_at, Counts(stable, candidate))
    edges = (Edge("total_p50", 128), Edge("total_p90", 128))
    canaries = view.canaries.having(canary).having_counted(Counted(uid, 1, (reading,), edges))
    return replace(view, canaries=canaries)


async def test_the_verdict_of_its_shadow_is_shown(admin: Admin) -> None:
    shadow = {"name": "s", "primary": "chat", "candidate": "small", "share_permille": 100}
    made = await ask(admin, "POST", "/shadows", shadow)
    await start(admin, shadow="s")
    assert (await shown(admin))["shadow_verdict"] == "undecided"

    def says(view: ClusterView) -> ClusterView:
        compared = Compared(verdicts={made["uid"]: "better"})
        return replace(view, shadows=replace(view.shadows, compared=compared))

    await admin.cluster.observe(says, "test")
    assert (await shown(admin))["shadow_verdict"] == "better"


async def test_one_without_a_candidate_waits_for_a_revision_and_owns_nothing(admin: Admin) -> None:
    made = await start(admin, candidate="")
    assert (made["state"], made["candidate_arm"]) == ("waiting", "")
    await ask(admin, "PUT", "/deployments/chat", {**SPEC, "canary": [], "max_adapters": 3})
    await ask(admin, "DELETE", "/canaries/next")


async def test_a_dry_run_starts_nothing(admin: Admin) -> None:
    made = await ask(admin, "POST", "/canaries", ASKED, dry_run="true")
    assert made["name"] == "next"
    assert await ask(admin, "GET", "/canaries") == []


async def test_a_viewer_looks_and_moves_nothing(admin: Admin) -> None:
    await start(admin)
    viewer = await admin.headers(Role.VIEWER)
    assert (await admin.client.get(NEXT, headers=viewer)).status_code == 200
    reply = await admin.client.post(f"{NEXT}/abort", headers=viewer)
    assert_problem(reply, 403, "viewer")


@pytest.mark.parametrize(
    ("wrong", "status", "words"),
    [
        ({"target": "nobody"}, 422, "target is 'nobody': no deployment 'nobody'"),
        ({"candidate": "nobody"}, 422, "candidate is 'nobody': no deployment 'nobody'"),
        ({"candidate": "chat"}, 422, "candidate is 'chat'"),
        ({"target": "chat:pirate"}, 422, "name a version"),
        ({"candidate": "pirate@2"}, 422, "is a deployment: name another deployment"),
        ({"shadow": "nobody"}, 422, "shadow is 'nobody'"),
        ({"steps": [{"permille": 50}, {"permille": 50}]}, 422, "each is larger than"),
        ({"steps": [{"permille": 0}]}, 422, "steps.0.permille"),
        ({"steps": []}, 422, "steps is empty"),
        ({"guards": {"errors": {"ratio": 0.5}}}, 422, "guards.errors.ratio"),
        ({"guards": {"errors": {"reach": 2}}}, 422, "guards.errors.reach"),
        ({"guards": {"tttf": {"margin": 0.1}}}, 422, "guards.tttf"),
    ],
)
async def test_what_could_never_be_carried_out_is_refused(
    admin: Admin, wrong: dict[str, Any], status: int, words: str
) -> None:
    assert_problem(await admin.client.post(CANARIES, json={**ASKED, **wrong}), status, words)


async def test_two_canaries_share_no_arm(admin: Admin) -> None:
    await start(admin)
    assert_problem(await admin.client.post(CANARIES, json=ASKED), 409, "'next' is running")
    other = {"name": "more", "target": "chat", "candidate": "other"}
    assert_problem(await admin.client.post(CANARIES, json=other), 409, "canary 'next'")


# What is refused while a canary goes on, by method, path and body.
OF_DEPLOYMENTS = [
    ("PATCH", "/deployments/chat/settings", {"canary": [{"deployment": "other", "permille": 9}]}),
    ("PUT", "/deployments/chat", {**SPEC, "max_adapters": 4}),
    ("PUT", "/deployments/small", {**SMALL, "model": "other"}),
    ("DELETE", "/deployments/chat", None),
    ("DELETE", "/deployments/small", None),
]
OF_ALIASES = [
    ("PUT", "/aliases/chat/pirate", {"target": "pirate@2"}),
    ("PUT", "/aliases/chat/pirate", {"split": {"pirate@1": 1, "pirate@2": 1}}),
    ("DELETE", "/aliases/chat/pirate", None),
    ("POST", "/adapters/pirate@2/retire", None),
    ("DELETE", "/adapters/pirate@2", None),
    ("DELETE", "/deployments/chat", None),
]


@pytest.mark.parametrize(
    ("canary", "method", "path", "body"),
    [(ASKED, *each) for each in OF_DEPLOYMENTS] + [(PIRATES, *each) for each in OF_ALIASES],
)
async def test_what_a_canary_has_for_itself_is_moved_once_it_is_aborted(
    admin: Admin, canary: dict[str, str], method: str, path: str, body: Any
) -> None:
    name = canary["name"]
    await ask(admin, "POST", "/canaries", canary)
    before = admin.cluster.view()
    reply = await admin.client.request(method, API + path, json=body)
    assert_problem(reply, 409, f"canary {name}'s", f"`penstock canary abort {name}`")
    assert reply.json()["type"] == "urn:penstock:canary-owns"
    tried = await admin.client.request(method, API + path, json=body, params={"dry_run": "true"})
    assert tried.status_code == 409
    assert admin.cluster.view() is before
    await ask(admin, method, path, body, **ABORT)
    assert (await shown(admin, name))["state"] == "aborted"
    assert "changed" in (await shown(admin, name))["why"]


async def test_what_moves_no_arm_is_nobodys(admin: Admin) -> None:
    await start(admin)
    await ask(admin, "POST", "/deployments/small/scale", {"replicas": 3})
    await ask(admin, "PATCH", "/deployments/chat/settings", {"max_queued": 7})
    await ask(admin, "PUT", "/aliases/chat/pirate", {"target": "pirate@2"})
    await ask(admin, "POST", "/deployments/chat/restart")
    assert (await shown(admin))["state"] == "running"


async def test_nothing_is_aborted_for_a_change_that_is_refused_all_the_same(admin: Admin) -> None:
    await start(admin)
    wrong = {**SPEC, "degrade": ["fallback:chat"], "max_adapters": 4}
    reply = await admin.client.put(f"{API}/deployments/chat", json=wrong, params=ABORT)
    assert reply.status_code == 422
    assert (await shown(admin))["state"] == "running"


async def judged(admin: Admin) -> None:
    """A second revision, which a canary judges: the first one serves."""
    await start(admin, candidate="", name="careful")
    chat = {**SPEC, "update": {"canary": "careful"}}
    await ask(admin, "PUT", "/deployments/chat", chat)
    await admin.cluster.observe(
        lambda view: view.with_deployment(in_service(view.deployment("chat"))), "test"
    )
    await ask(admin, "PUT", "/deployments/chat", {**chat, "max_adapters": 3})
    assert (await shown(admin, "careful"))["candidate_arm"] == "revision 2"


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/deployments/chat/rollback", None),
        ("POST", "/deployments/chat/pause", None),
        ("POST", "/deployments/chat/restart", None),
        ("PUT", "/deployments/chat", {**SPEC, "max_adapters": 4}),
        ("PUT", "/deployments/chat", {**SPEC, "max_adapters": 4, "update": {"canary": "careful"}}),
        ("DELETE", "/deployments/chat", None),
    ],
)
async def test_a_revision_that_is_judged_is_left_to_its_canary(
    admin: Admin, method: str, path: str, body: Any
) -> None:
    await judged(admin)
    uid = (await shown(admin, "careful"))["uid"]
    reply = await admin.client.request(method, API + path, json=body)
    assert_problem(reply, 409, "canary careful's")
    await ask(admin, method, path, body, **ABORT)
    now = await shown(admin, "careful")
    assert now["state"] == "aborted" or now["uid"] != uid
