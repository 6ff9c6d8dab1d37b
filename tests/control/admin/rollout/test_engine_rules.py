"""What may be asked of engines, how many there may be, and how they stand beside deployments that
people wrote."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from penstock.control.state.rollout.engines import LONGEST_TTL_S
from penstock.control.state.tenancy.tokens import Role
from tests.control.admin.adapters.test_adapters import PIRATE
from tests.control.admin.app_harness import assert_problem
from tests.control.admin.rollout.engine_world import MODEL, Engines, running_engines

DEPLOYMENTS = "/admin/v1/deployments"


@pytest.fixture
async def engines() -> AsyncIterator[Engines]:
    async with running_engines() as running:
        yield running


async def with_pirate(engines: Engines) -> None:
    """A deployment of people that offers the adapter pirate@1 as `old`."""
    client = engines.admin.client
    await client.put(f"{DEPLOYMENTS}/mini", json={**MODEL, "max_adapters": 2})
    for version in ("1", "2"):
        made = await client.post("/admin/v1/adapters", json={**PIRATE, "version": version})
        assert made.status_code == 201, made.text
    alias = await client.put("/admin/v1/aliases/mini/old", json={"target": "pirate@1"})
    assert alias.status_code == 201, alias.text


async def test_a_name_is_taken_once_and_free_as_soon_as_its_engine_is_ended(
    engines: Engines,
) -> None:
    replies = await asyncio.gather(*(engines.post(name="scratch") for _ in range(5)))
    assert sorted(each.status_code for each in replies) == [202, 409, 409, 409, 409]
    assert_problem(await engines.post(name="scratch"), 409, "'scratch' is an engine")
    await engines.admin.client.put(f"{DEPLOYMENTS}/mini", json=MODEL)
    assert_problem(await engines.post(name="mini"), 409, "'mini' is a deployment")
    known = (await engines.get("engines/scratch")).json()["id"]
    assert_problem(await engines.post(name=known), 409, "is the id of an engine")
    for _ in range(3):
        ended = await engines.admin.client.delete(f"/admin/v1/engines/{known}")
        assert ended.status_code == 204
        known = (await engines.started(name="scratch"))["id"]
    assert_problem(await engines.admin.client.delete("/admin/v1/engines/mini"), 404, "'mini'")


@pytest.mark.parametrize(
    ("said", "word"),
    [
        ({"ttl_s": -1}, "ttl_s"),
        ({"ttl_s": LONGEST_TTL_S + 1}, "ttl_s"),
        ({"ttl_s": 1e308}, "ttl_s"),
        ({"ttl_s": 1.5}, "ttl_s"),
        ({"ttl_s": True}, "ttl_s"),
        ({"ttl_s": "60"}, "ttl_s"),
        ({"ttl_s": None}, "ttl_s"),
        ({"name": "No Name"}, "name is 'No Name'"),
        ({"name": "a" * 64}, "1 to 63"),
        ({"name": "../x"}, "name is '../x'"),
        ({"name": "a\n"}, "printable"),
        ({"engine": "llama"}, "engine is 'llama'"),
        ({"model": ""}, "model"),
        ({"engine_args": {"--x": 1}}, "'--x'"),
        ({"engine_args": {"x": "y" * 4097}}, "4096"),
        ({"engine_args": {"api_key": "sk-1"}, "engine": "openai"}, "api_key"),
        ({"owner": "people"}, "owner"),
        ({"replicas": 2}, "replicas"),
        ({"adapters": ["pirate"]}, "'pirate'"),
        ({"adapters": ["pirate@9"]}, "'pirate@9'"),
        ({"adapters": ["mini:none"]}, "'mini:none'"),
        ({"adapters": ["pirate@1", "pirate@2"]}, "one adapter of a name"),
        ({"adapters": ["pirate@1"], "model": "other"}, "pirate@1 is made for penstock-mini"),
        (
            {"adapters": ["pirate@1"], "engine": "canned", "engine_args": {"text": "Sorry."}},
            "pirate@1: the engine canned takes none",
        ),
    ],
)
async def test_what_cannot_be_is_refused_with_the_value(
    engines: Engines, said: dict[str, Any], word: str
) -> None:
    await with_pirate(engines)
    assert_problem(await engines.post(**said), 422, word)
    assert await engines.names() == []


async def test_one_token_has_no_more_than_its_share_and_all_no_more_than_the_head_allows(
    engines: Engines,
) -> None:
    other = await engines.admin.headers(Role.OPERATOR)
    for number in range(3):
        await engines.started(name=f"a{number}")
    refused = await engines.post(name="a3")
    words = ("3 engines of token 'admin', and may be 3", "a0, a1, a2", "--max-engines-per-token")
    assert_problem(refused, 429, *words)
    assert refused.headers["x-should-retry"] == "false"
    for number in range(2):
        assert (await engines.post(name=f"b{number}", headers=other)).status_code == 202
    assert_problem(await engines.post(name="b2", headers=other), 429, "5 engines, and may be 5")
    await engines.admin.client.delete("/admin/v1/engines/a0")
    assert (await engines.post(name="b2", headers=other)).status_code == 202


async def test_who_may_do_what(engines: Engines) -> None:
    viewer = await engines.admin.headers(Role.VIEWER)
    operator = await engines.admin.headers(Role.OPERATOR)
    assert_problem(await engines.post(headers=viewer), 403, "role operator")
    assert_problem(await engines.post(headers=operator, ttl_s=0), 403, "never ends", "role admin")
    code: dict[str, Any] = {"engine": "vllm", "engine_args": {"trust_remote_code": True}}
    assert_problem(await engines.post(headers=operator, **code), 403, "role admin")
    assert await engines.names() == []


async def test_it_holds_its_adapters_from_the_start(engines: Engines) -> None:
    await with_pirate(engines)
    told = await engines.started(name="one", adapters=["pirate@2"])
    assert told["adapters"] == ["one:pirate"]
    told = await engines.started(name="two", adapters=["mini:old", "pirate@2"])
    assert told["adapters"] == ["two:old", "two:pirate"]
    view = engines.admin.cluster.view()
    assert view.adapters.alias("two", "old").pinned
    assert str(view.adapters.alias("two", "old").target) == "pirate@1"
    assert [view.deployment(n).spec.template.max_adapters for n in ("one", "two")] == [1, 2]
    await engines.admin.client.delete("/admin/v1/engines/two")
    assert [a.full_name for a in engines.admin.cluster.view().adapters.aliases.values()] == [
        "mini:old",
        "one:pirate",
    ]


async def test_people_change_its_limits_and_nothing_that_makes_another_thing_of_it(
    engines: Engines,
) -> None:
    await engines.started(name="scratch")
    client, one = engines.admin.client, f"{DEPLOYMENTS}/scratch"
    for reply in (
        await client.put(one, json=MODEL),
        await client.post(f"{one}/scale", json={"replicas": 2}),
        await client.post(DEPLOYMENTS, json={**MODEL, "name": "scratch"}),
    ):
        assert_problem(reply, 409, "'scratch'")
    assert (await client.patch(f"{one}/settings", json={"max_queued": 7})).status_code == 200
    known = engines.admin.cluster.view().deployment("scratch")
    assert (known.spec.limits.max_queued, known.spec.replicas) == (7, 1)
    assert (await engines.get("deployments/scratch")).json()["owner"] == "engines"
    assert_problem(await client.put(one, json={**MODEL, "owner": "people"}), 422, "owner")


async def test_it_is_listed_apart_and_in_no_export_and_no_set_of_documents_takes_it(
    engines: Engines,
) -> None:
    await with_pirate(engines)
    await engines.started(name="scratch", adapters=["pirate@1"])
    for query, names in (
        ("", ["mini", "scratch"]),
        ("?owner=people", ["mini"]),
        ("?owner=engines", ["scratch"]),
    ):
        listed = (await engines.get(f"deployments{query}")).json()
        assert [each["name"] for each in listed] == names
    exported = (await engines.get("export")).text
    assert '"alias":"old"' in exported
    assert "scratch" not in exported
    document = {"penstock": "v1", "kind": "deployment", **MODEL, "name": "scratch"}
    apply = "/admin/v1/apply"
    refused = await engines.admin.client.post(apply, json={"documents": [document]})
    assert refused.status_code == 422
    assert "'scratch' is an engine" in refused.json()["detail"]
    mine = {**document, "name": "mine"}
    for documents in ([mine], []):
        pruned = await engines.admin.client.post(
            apply, json={"documents": documents}, params={"prune": "true"}
        )
        assert pruned.status_code == 200, pruned.text
    assert await engines.names() == ["scratch"]
    assert "mine" not in engines.admin.cluster.view().deployments


async def test_engines_are_told_in_pages_by_name(engines: Engines) -> None:
    for name in ("c", "a", "b"):
        await engines.started(name=name)

    async def page(query: str) -> list[str]:
        return [each["name"] for each in (await engines.get(f"engines?{query}")).json()]

    assert await page("limit=2") == ["a", "b"]
    assert await page("limit=2&after=b") == ["c"]
