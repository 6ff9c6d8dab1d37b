"""Adapters by every name that clients may use, and what answers say of them."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from pathlib import Path

import pytest

from penstock.v1 import routes_pb2 as routes
from tests.fakes.fake_control import deployment, digest_of, route, tenant, version
from tests.fakes.fake_replica import hello
from tests.fakes.waiting import until
from tests.gateway_cpp.blackbox.conftest import Start, System
from tests.gateway_cpp.blackbox.held import Held, asked, busy, every_dialect
from tests.gateway_cpp.blackbox.raw_http import RawClient, chat, request

VERSION = "x-penstock-adapter-version"
BEARER = "Authorization: Bearer sesame\r\n"
PIRATES = [version("pirate@1"), version("pirate@2")]
AT_1 = deployment(adapters={"pirate": "pirate@1"})
AT_2 = deployment(adapters={"pirate": "pirate@2"})


def split(first: int, second: int) -> routes.DeploymentRoute:
    """`mini` with sessions of `pirate` shared out by these weights."""
    return deployment(adapters={"pirate": {"pirate@1": first, "pirate@2": second}})


async def show(system: System, *deployments: routes.DeploymentRoute) -> None:
    """These are in force when this returns, and both versions listed."""
    routed = [route(replica) for replica in system.replicas]
    await system.has_routes(await system.control.publish(deployments, routed, versions=PIRATES))


async def versions_of(system: System, users: int) -> dict[str, str]:
    """Which version answers each user, by the header; the replica was asked for the same one."""
    told = {}
    for user in (f"user {i}" for i in range(users)):
        answer = await system.ask(chat(model="mini:pirate", user=user))
        assert answer.status == 200
        told[user] = answer.headers[VERSION]
        call = system.replicas[0].calls[-1].request
        assert (call.adapter, call.adapter_digest) == (told[user], digest_of(told[user]))
    return told


@pytest.mark.parametrize(
    ("model", "adapter"),
    [
        ("mini", ""),
        ("mini:pirate", "pirate@1"),
        ("mini:pirate@1", "pirate@1"),
        ("mini:pirate@2", "pirate@2"),
    ],
)
async def test_a_replica_is_told_the_version_and_its_digest(
    system: System, model: str, adapter: str
) -> None:
    await show(system, AT_1)
    answer = await system.ask(chat(model=model))
    assert answer.status == 200
    assert answer.headers.get(VERSION, "") == adapter
    call = system.replicas[0].calls[-1].request
    assert call.adapter == adapter
    assert call.adapter_digest == (digest_of(adapter) if adapter else "")
    assert call.model == model


@every_dialect
@pytest.mark.parametrize("stream", [False, True])
async def test_every_answer_names_its_versions(start: Start, dialect: str, stream: bool) -> None:
    system = await start(scripts=(hello,))
    answer = await system.ask(asked(dialect, model="mini:pirate", stream=stream))
    assert answer.headers[VERSION] == "pirate@1"
    assert answer.headers["x-penstock-model-version"] == "weights-1"


async def test_log_lines_and_metadata_name_the_versions(system: System) -> None:
    data = chat("x-penstock-metadata: include\r\n", model="mini:pirate", stream=True)
    answer = await system.ask(data)
    (told,) = [
        json.loads(line.removeprefix("data: "))["penstock"]
        for line in answer.body.decode().split("\n\n")
        if '"penstock"' in line
    ]
    assert told["adapter_version"] == "pirate@1"
    assert told["model_version"] == "weights-1"
    line = await until(lambda: system.gateway.find_log("request settled"), "it is logged")
    assert line["adapter"] == "pirate@1"
    assert line["model_version"] == "weights-1"


async def test_sessions_are_shared_out_by_weight_and_stay(system: System) -> None:
    await show(system, split(70, 30))
    first = await versions_of(system, 200)
    assert 30 <= Counter(first.values())["pirate@2"] <= 90
    assert await versions_of(system, 200) == first


async def test_no_more_sessions_move_than_weight_does(system: System) -> None:
    await show(system, split(90, 10))
    before = await versions_of(system, 200)
    await show(system, split(80, 20))
    after = await versions_of(system, 200)
    moved = {user for user in before if before[user] != after[user]}
    assert all(before[user] == "pirate@1" for user in moved)
    assert 5 <= len(moved) <= 40


@pytest.mark.parametrize("model", ["mini:nobody", "mini:pirate@3", "mini:pirate@", "maxi:pirate@1"])
async def test_what_does_not_exist_is_404_with_what_does(system: System, model: str) -> None:
    await show(system, AT_1)
    answer = await system.ask(chat(model=model))
    assert answer.status == 404
    assert answer.error["code"] == "model_not_found"
    assert "mini:pirate, mini:pirate@1, mini:pirate@2" in answer.error["message"]
    assert answer.headers["x-should-retry"] == "false"
    assert system.replicas[0].calls == []


@pytest.mark.parametrize("family", ["", "maxi-family"])
async def test_an_alias_whose_version_is_not_to_be_had_fails_closed(
    system: System, family: str
) -> None:
    listed = [version("pirate@1", base_family=family), version("poet@1")]
    routed = [route(system.replicas[0])]
    await system.has_routes(await system.control.publish([AT_1], routed, versions=listed))
    answer = await system.ask(chat(model="mini:pirate"))
    assert answer.status == 503
    assert answer.error["code"] == "adapter_unknown"
    assert "`pirate@1`" in answer.error["message"]
    assert system.replicas[0].calls == []
    assert (await system.ask(chat())).status == 200


async def test_a_stream_ends_under_the_version_that_it_began_with(start: Start) -> None:
    held = Held()
    system = await start(scripts=(held,), deployment=AT_1)
    async with busy(system, chat(model="mini:pirate", stream=True)) as client:
        await show(system, AT_2)
        async with busy(system, chat(model="mini:pirate", stream=True)) as other:
            held.let_go(2)
            for each, adapter in ((client, "pirate@1"), (other, "pirate@2")):
                answer = await each.response()
                assert answer.headers[VERSION] == adapter
                assert answer.body.endswith(b"data: [DONE]\n\n")
    assert [call.request.adapter for call in system.replicas[0].calls] == ["pirate@1", "pirate@2"]


async def test_a_request_that_is_tried_again_stays_with_its_version(start: Start) -> None:
    held = Held()
    system = await start(scripts=(held, held), deployment=AT_1)
    async with busy(system, chat(model="mini:pirate")) as client:
        await show(system, AT_2)
        first, second = sorted(system.replicas, key=lambda replica: -len(replica.calls))
        second.script = hello
        await first.die()
        answer = await client.response()
    assert answer.status == 200
    assert answer.headers[VERSION] == "pirate@1"
    assert second.calls[-1].request.adapter == "pirate@1"
    assert second.calls[-1].request.adapter_digest == digest_of("pirate@1")


async def test_a_request_that_waits_stays_with_its_version(start: Start) -> None:
    held = Held()
    limited = deployment(
        adapters={"pirate": "pirate@1"}, limits=routes.Limits(max_ongoing=1, max_queued=9)
    )
    system = await start(scripts=(held,), deployment=limited)
    async with busy(system), system.client() as client:
        await client.send(chat(model="mini:pirate"))
        await system.has_queued(1)
        await show(system, AT_2)
        held.let_go(2)
        assert (await client.response()).headers[VERSION] == "pirate@1"


async def test_a_canary_is_asked_for_the_same_adapter(start: Start) -> None:
    system = await start(scripts=(hello, hello))
    first, second = system.replicas
    deployments = [
        deployment(canary={"next": 1000}, adapters={"pirate": "pirate@1"}),
        deployment("next", adapters={"pirate": "pirate@2"}),
    ]
    # Known before the canary's replica has reported its slots.
    routed = [route(first), route(second, of="next", adapters=["pirate@1", "pirate@2"])]
    await system.has_routes(await system.control.publish(deployments, routed, versions=PIRATES))
    for model, adapter in (("mini:pirate", "pirate@2"), ("mini:pirate@1", "pirate@1")):
        answer = await system.ask(chat(model=model))
        assert answer.headers["x-penstock-backend"] == "next"
        assert answer.headers[VERSION] == adapter
        assert second.calls[-1].request.adapter == adapter


async def test_a_canary_leads_nobody_to_an_adapter_that_it_may_not_use(start: Start) -> None:
    some = tenant(keys=["sesame"], adapters=["pirate"])
    system = await start(scripts=(hello, hello), tenants=[some], keys_required=True)
    first, second = system.replicas
    deployments = [
        deployment(canary={"next": 1000}, adapters={"pirate": "pirate@1"}),
        deployment("next", adapters={"pirate": "poet@1"}),
    ]
    routed = [route(first), route(second, of="next")]
    published = await system.control.publish(
        deployments, routed, tenants=[some], keys_required=True
    )
    await system.has_routes(published)
    answer = await system.ask(chat(BEARER, model="mini:pirate"))
    assert answer.headers[VERSION] == "pirate@1"
    assert len(first.calls) == 1


async def listed(system: System, headers: str = "") -> dict[str, dict[str, object]]:
    """The cards of /v1/models, by id."""
    answer = await system.ask(request("GET", "/v1/models", headers=headers))
    return {card["id"]: card for card in json.loads(answer.body)["data"]}


async def test_models_lists_aliases_and_versions_with_parent_and_root(system: System) -> None:
    await show(system, split(10, 90), deployment("maxi", base_family="maxi-family"))
    cards = await listed(system)
    assert list(cards) == ["maxi", "mini", "mini:pirate", "mini:pirate@1", "mini:pirate@2"]
    assert cards["mini"]["parent"] is None
    assert cards["mini:pirate"]["root"] == "pirate@2"  # the larger share
    assert cards["mini:pirate@1"]["root"] == "pirate@1"
    assert {cards[f"mini:{name}"]["parent"] for name in ("pirate", "pirate@1")} == {"mini"}
    assert cards["mini:pirate@1"]["created"] == 1_700_000_001
    for path in ("mini%3Apirate%401", "mini:pirate@1", "mini%3apirate@1"):
        answer = await system.ask(request("GET", f"/v1/models/{path}"))
        assert json.loads(answer.body) == cards["mini:pirate@1"]
    one = await system.ask(request("GET", "/v1/models/mini:pirate"))
    assert json.loads(one.body) == cards["mini:pirate"]
    none = await system.ask(request("GET", "/v1/models/mini%3Apirate%403"))
    assert none.status == 404


async def test_a_tenant_sees_and_uses_only_the_adapters_that_it_may(start: Start) -> None:
    some = tenant(keys=["sesame"], adapters=["pirate"])
    system = await start(tenants=[some], keys_required=True)
    mixed: dict[str, str | dict[str, int]]
    mixed = {"both": {"pirate@1": 1, "poet@1": 1}, "pirate": "pirate@2", "poet": "poet@1"}
    published = await system.control.publish(
        [deployment(adapters=mixed)],
        [route(system.replicas[0])],
        tenants=[some],
        keys_required=True,
        versions=[*PIRATES, version("poet@1")],
    )
    await system.has_routes(published)
    may = {"mini", "mini:pirate", "mini:pirate@1", "mini:pirate@2"}
    assert set(await listed(system, BEARER)) == may
    for model in may:
        assert (await system.ask(chat(BEARER, model=model))).status == 200
    for model in ("mini:poet", "mini:poet@1"):
        assert (await system.ask(chat(BEARER, model=model))).status == 403
        card = await system.ask(request("GET", f"/v1/models/{model}", headers=BEARER))
        assert card.status == 403
    assert "poet" not in (await system.ask(chat(BEARER, model="mini:x"))).error["message"]


async def test_adapters_are_known_without_the_head(start: Start, tmp_path: Path) -> None:
    system = await start(deployment=AT_1)
    await until((tmp_path / "snapshot-gw-1.pb").exists, "the snapshot is kept")
    await system.control.die()
    system.gateway.kill()
    await system.gateway.start()
    async with RawClient(system.gateway.port) as client:
        answer = await client.ask(chat(model="mini:pirate"))
    assert answer.headers[VERSION] == "pirate@1"
    assert system.replicas[0].calls[-1].request.adapter_digest == digest_of("pirate@1")


async def test_ten_thousand_aliases_are_taken_up_and_one_is_found(start: Start) -> None:
    many = deployment(adapters={f"alias-{i}": f"pirate@{1 + i % 1000}" for i in range(10_000)})
    system = await start(deployment=many)
    answers = await asyncio.gather(
        *(system.ask(chat(model=f"mini:alias-{i}")) for i in (0, 5_000, 9_999))
    )
    assert [answer.headers[VERSION] for answer in answers] == [
        "pirate@1",
        "pirate@1",
        "pirate@1000",
    ]
