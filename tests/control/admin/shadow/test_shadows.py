"""Shadows in the admin API: made, refused with what is wrong, paused, reported, deleted."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from penstock.control.state.cluster import ClusterView
from penstock.control.state.routing.snapshot import routes_of
from penstock.control.state.shadow.comparing import Account
from penstock.control.state.shadow.shadows import Compared
from penstock.control.state.tenancy.tokens import Role
from penstock.control.state.tenancy.usage import Counts, Reading, UsageKey
from tests.control.admin.app_harness import Admin, assert_problem, running_admin

API = "/admin/v1"
SHADOWS = f"{API}/shadows"
SMALLER = f"{SHADOWS}/smaller"
ASKED = {"name": "smaller", "primary": "chat", "candidate": "small", "share_permille": 200}
CLOUD = {"engine": "canned", "model": "sorry", "engine_args": {"text": "Sorry."}}


@pytest.fixture
async def admin() -> AsyncIterator[Admin]:
    async with running_admin() as admin:
        for name, spec in (
            ("chat", {"engine": "simulated", "model": "penstock-mini", "max_adapters": 2}),
            ("small", {"engine": "simulated", "model": "tiny"}),
            ("cloud", CLOUD),
        ):
            reply = await admin.client.put(f"{API}/deployments/{name}", json=spec)
            assert reply.status_code == 201, reply.text
        yield admin


async def create(admin: Admin, **more: Any) -> dict[str, Any]:
    reply = await admin.client.post(SHADOWS, json={**ASKED, **more})
    assert reply.status_code == 201, reply.text
    return dict(reply.json())


async def test_a_shadow_is_made_listed_paused_resumed_and_deleted(admin: Admin) -> None:
    made = await create(
        admin,
        sample="session",
        endpoints=["/v1/completions"],
        until={"pairs": 500, "at": "2030-01-02T03:04:05Z"},
        checks=["error", "json"],
        margins={"error": 0.02},
        self_permille=100,
        max_concurrent=2,
        max_per_minute=60,
        usd_per_day=1.5,
    )
    assert {name: made[name] for name in ASKED} == ASKED
    assert made["until"] == {"pairs": 500, "at": "2030-01-02T03:04:05Z"}
    assert (made["margins"], made["checks"]) == ({"error": 0.02}, ["error", "json"])
    assert (made["state"], made["verdict"], made["pairs"]) == ("waiting", "undecided", 0)
    assert made["message"] == "the comparer starts"
    assert (made["record"], made["max_concurrent"], made["usd_per_day"]) == ("none", 2, 1.5)
    assert made.pop("pairs_a_day") == 0
    assert (await admin.client.get(SHADOWS)).json() == [made]
    assert (await admin.client.get(SMALLER)).json() == made
    assert (await admin.client.post(f"{SMALLER}/pause")).json()["state"] == "paused"
    assert (await admin.client.post(f"{SMALLER}/resume")).json()["state"] == "waiting"
    assert (await admin.client.delete(SMALLER)).status_code == 204
    assert_problem(await admin.client.get(SMALLER), 404, "no shadow 'smaller'")
    trail = [entry.what for entry in await admin.store.audit(4)]
    assert trail == [f"{what} shadow smaller" for what in ("delete", "resume", "pause", "create")]


async def test_one_whose_deployment_is_deleted_says_so(admin: Admin) -> None:
    made = await create(admin)
    await admin.cluster.observe(lambda view: _compared(view, made["uid"]), "test")
    assert (await admin.client.get(SMALLER)).json()["state"] == "running"
    assert (await admin.client.delete(f"{API}/deployments/small")).status_code < 300
    shown = (await admin.client.get(SMALLER)).json()
    assert shown["state"] == "waiting"
    assert shown["message"].startswith("candidate is 'small': no deployment 'small'")


def _compared(view: ClusterView, uid: str) -> ClusterView:
    """With a comparer that knows this shadow."""
    compared = Compared(":9000", known=frozenset({uid}))
    return replace(view, shadows=replace(view.shadows, compared=compared))


async def test_an_aa_run_is_three_fields(admin: Admin) -> None:
    made = await create(admin, candidate="chat")
    assert (made["sample"], made["until"], made["self_permille"]) == ("request", None, None)


async def test_a_judge_and_an_embedding_deployment_are_asked_where_they_are_named(
    admin: Admin,
) -> None:
    made = await create(
        admin,
        judge="cloud",
        embedder="small",
        usd_per_day=1.0,
        checks=["error", "judge"],
        margins={"semantic": 0.1},
    )
    assert (made["judge"], made["embedder"]) == ("cloud", "small")
    kept = (await admin.client.get(SMALLER)).json()
    assert (kept["judge"], kept["embedder"]) == ("cloud", "small")
    assert (await create(admin, name="plain"))["judge"] == ""


async def test_a_dry_run_makes_nothing(admin: Admin) -> None:
    reply = await admin.client.post(SHADOWS, params={"dry_run": "true"}, json=ASKED)
    assert reply.status_code == 201
    assert (await admin.client.get(SHADOWS)).json() == []


async def test_a_name_is_given_once(admin: Admin) -> None:
    await create(admin)
    reply = await admin.client.post(SHADOWS, json=ASKED)
    assert_problem(reply, 409, "shadow 'smaller' exists")


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"primary": "nobody"}, "primary is 'nobody': no deployment 'nobody'"),
        ({"primary": "chat:pirate"}, "primary is 'chat:pirate': "),
        ({"primary": "chat:pirate@1"}, "primary is 'chat:pirate@1': name the deployment"),
        ({"candidate": "nobody"}, "candidate is 'nobody': no deployment 'nobody'"),
        ({"candidate": "chat:pirate"}, "an alias moves, name what it is now"),
        (
            {"candidate": "chat:pirate@9"},
            "candidate is 'chat:pirate@9': pirate@9 is not registered",
        ),
        ({"candidate": "chat:@"}, "candidate is 'chat:@': "),
        ({"candidate": "cloud"}, "cloud is a provider, which costs money: say usd_per_day"),
        ({"primary": "cloud"}, "say usd_per_day, or self_permille 0"),
        ({"share_permille": 0}, "share_permille"),
        ({"share_permille": 1001}, "share_permille"),
        ({"max_concurrent": 1001}, "max_concurrent is 1001: it must be 1 to 1000"),
        ({"tenants": ["acme"]}, "tenants is 'acme': no tenant 'acme'"),
        ({"endpoints": ["/v1/embeddings"]}, "endpoints has '/v1/embeddings', which cannot be"),
        ({"checks": ["error", "error"]}, "checks has 'error' twice"),
        ({"checks": ["taste"]}, "checks has 'taste': there are error, "),
        ({"checks": ["judge"]}, "checks has 'judge', which asks a deployment: name it as judge"),
        ({"margins": {"semantic": 0.1}}, "which asks a deployment: name it as embedder"),
        ({"judge": "nobody"}, "judge is 'nobody': no deployment 'nobody'"),
        ({"embedder": "chat:pirate"}, "embedder is 'chat:pirate': no deployment"),
        ({"judge": "cloud"}, "cloud is a provider, which costs money: say usd_per_day"),
        ({"margins": {"error": 1}}, "margins.error is 1: it must lie between 0 and 1"),
        ({"record": "all"}, "record: Input should be 'none', 'redacted' or 'full'"),
        ({"until": {}}, "say pairs, at, or both"),
        ({"until": {"at": "2020-01-01T00:00:00Z"}}, "until.at is 2020-01-01T00:00:00+00:00, which"),
        ({"name": "No"}, "name is 'No'"),
        ({"judges": "chat"}, "judges: Extra inputs are not permitted"),
    ],
)
async def test_what_cannot_be_is_refused_with_what_is_wrong(
    admin: Admin, wrong: dict[str, Any], words: str
) -> None:
    reply = await admin.client.post(SHADOWS, json={**ASKED, **wrong})
    assert_problem(reply, 422, words)
    assert (await admin.client.get(SHADOWS)).json() == []


async def test_an_adapter_that_fits_may_be_a_candidate(admin: Admin) -> None:
    source = {"name": "pirate", "version": 1, "base": "chat", "source": "penstock-mini/pirate"}
    reply = await admin.client.post(f"{API}/adapters", json=source)
    assert reply.status_code == 201, reply.text
    misfit = {**ASKED, "candidate": "small:pirate@1"}
    assert_problem(await admin.client.post(SHADOWS, json=misfit), 422, "pirate@1 is made for")
    assert (await create(admin, candidate="chat:pirate@1"))["candidate"] == "chat:pirate@1"
    alias = f"{API}/aliases/chat/p"
    await admin.client.put(alias, json={"target": "pirate@1"})
    made = await create(admin, name="two", primary="chat:p", candidate="cloud", usd_per_day=1)
    assert made["primary"] == "chat:p"


async def test_a_tenant_may_forbid_it(admin: Admin) -> None:
    for name, shadow in (("acme", "never"), ("other", "allow")):
        await admin.client.post(f"{API}/tenants", json={"id": name, "shadow": shadow})
    refused = await admin.client.post(SHADOWS, json={**ASKED, "tenants": ["acme"]})
    assert_problem(refused, 422, "tenants is 'acme': ", "shadow=never")
    assert (await create(admin, tenants=["other"]))["tenants"] == ["other"]
    routes = routes_of(admin.cluster.view())
    assert [each.tenant.spec.shadow for each in routes.tenants] == ["never", "allow"]


async def test_a_report_waits_for_the_comparer(admin: Admin) -> None:
    await create(admin)
    assert_problem(await admin.client.get(f"{SMALLER}/report"), 503, "the comparer starts")
    admin.comparisons.told = Account('{"verdict": "worse"}', "# Worse", "<h1>")
    admin.comparisons.verdict, admin.comparisons.pairs = "worse", 160
    told = (await admin.client.get(f"{SMALLER}/report")).json()
    assert told["report"] == {"verdict": "worse"}
    assert (told["markdown"], told["html"]) == ("# Worse", "<h1>")
    assert (told["name"], told["verdict"], told["pairs"]) == ("smaller", "worse", 160)
    assert_problem(await admin.client.get(f"{SHADOWS}/nobody/report"), 404, "no shadow 'nobody'")


async def test_a_report_reckons_with_the_busier_of_two_days(admin: Admin) -> None:
    await create(admin)
    today = admin.clock.now().date()
    busy = ((0, "i", 100), (1, "j", 4000), (2, "k", 9000))
    for days, instance, requests in busy:
        reading = Reading(
            today - timedelta(days=days), instance, UsageKey("", "", "chat", ""), Counts(requests)
        )
        await admin.store.record([reading])
    admin.comparisons.told = Account("{}", "", "")
    told = (await admin.client.get(f"{SMALLER}/report")).json()
    assert told["pairs_a_day"] == admin.comparisons.pairs_a_day == 800


async def test_a_viewer_looks_and_changes_nothing(admin: Admin) -> None:
    headers = await admin.headers(Role.VIEWER)
    assert_problem(await admin.client.post(SHADOWS, json=ASKED, headers=headers), 403)
    await create(admin)
    assert (await admin.client.get(SMALLER, headers=headers)).status_code == 200
    assert_problem(await admin.client.delete(SMALLER, headers=headers), 403)


async def test_what_is_recorded_is_shown_to_operators_alone(admin: Admin) -> None:
    made = await create(admin, record="redacted")
    assert made["record"] == "redacted"
    admin.comparisons.told = Account("{}", "", "")
    await admin.client.get(f"{SMALLER}/report")
    assert admin.comparisons.with_texts
    viewer = await admin.headers(Role.VIEWER)
    await admin.client.get(f"{SMALLER}/report", headers=viewer)
    assert not admin.comparisons.with_texts
