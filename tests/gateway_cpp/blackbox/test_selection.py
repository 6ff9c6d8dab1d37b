"""Which replica a request goes to: policies, stickiness, canaries, preferences, doubt."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from penstock.v1 import inference_pb2 as inference
from penstock.v1 import routes_pb2 as routes
from tests.fakes.fake_control import deployment, route, tenant
from tests.fakes.fake_replica import FakeReplica, hang, hello, refuse
from tests.fakes.waiting import until
from tests.gateway_cpp.blackbox.conftest import Start, System
from tests.gateway_cpp.blackbox.held import busy
from tests.gateway_cpp.blackbox.raw_http import chat

POLICIES = ["power_of_two", "least_loaded", "round_robin", "prefix_aware", "session"]
THREE = (hello, hello, hello)


def counts(system: System) -> list[int]:
    """Calls of each replica."""
    return [len(replica.calls) for replica in system.replicas]


def users(replica: FakeReplica) -> Counter[str]:
    """Whose calls it had."""
    return Counter(call.json["user"] for call in replica.calls)


@pytest.mark.parametrize("policy", [*POLICIES, "", "of_tomorrow"])
async def test_every_policy_serves_and_spreads(start: Start, policy: str) -> None:
    named = deployment(selection_policy=policy)
    system = await start("--threads", "1", scripts=THREE, deployment=named)
    for i in range(30):
        assert (await system.ask(chat(user=f"user {i}", seed=i))).status == 200
    assert sum(counts(system)) == 30
    if policy in ("least_loaded", "round_robin"):
        assert counts(system) == [10, 10, 10]


async def test_a_policy_changes_under_traffic_and_no_request_is_lost(start: Start) -> None:
    system = await start(scripts=THREE)
    over = asyncio.Event()

    async def ask_on() -> int:
        served = 0
        async with system.client() as client:
            while not over.is_set():
                assert (await client.ask(chat(user=str(served)))).status == 200
                served += 1
        return served

    routed = [route(replica) for replica in system.replicas]
    async with asyncio.TaskGroup() as group:
        askers = [group.create_task(ask_on()) for _ in range(4)]
        for policy in POLICIES:
            changed = deployment(selection_policy=policy)
            await system.has_routes(await system.control.publish([changed], routed))
        over.set()
    assert sum(asker.result() for asker in askers) == sum(counts(system))


@pytest.mark.parametrize("way", ["header", "session_id", "user"])
async def test_a_session_stays_with_its_replica_however_it_is_named(start: Start, way: str) -> None:
    sticky = deployment(selection_policy="session")
    system = await start(scripts=THREE, deployment=sticky)
    for turn in range(4):
        for name in ("ann", "bob", "cid", "dan", "eve", "fay"):
            header = f"x-penstock-session: {name}\r\n" if way == "header" else ""
            fields = {"user": name} if way == "user" else {"user": "all", "session_id": name}
            if way == "header":
                fields = {"session_id": f"{turn}", "user": "all"}
            data = chat(header, **fields, metadata={"of": name})
            assert (await system.ask(data)).status == 200
    homes: dict[str, set[str]] = {}
    for replica in system.replicas:
        for call in replica.calls:
            homes.setdefault(call.json["metadata"]["of"], set()).add(replica.replica_id)
    assert all(len(home) == 1 for home in homes.values()), homes
    assert len({min(home) for home in homes.values()}) > 1


async def test_prompts_that_begin_alike_go_to_one_replica(start: Start) -> None:
    aware = deployment(selection_policy="prefix_aware")
    system = await start("--threads", "1", scripts=THREE, deployment=aware)
    prefixes = [f"{i} " * 1500 for i in range(8)]
    for turn in range(4):
        for i, prefix in enumerate(prefixes):
            messages = [
                {"role": "system", "content": prefix},
                {"role": "user", "content": f"question {turn}"},
            ]
            data = chat(user=str(i), messages=messages)
            assert (await system.ask(data)).status == 200
    homes = [
        {replica.replica_id for replica in system.replicas if users(replica)[str(i)]}
        for i in range(len(prefixes))
    ]
    assert all(len(home) == 1 for home in homes), homes
    assert len(set().union(*homes)) > 1


async def with_canary(system: System, permille: int, name: str = "next") -> None:
    """`mini` sends that share to `next`, whose replica is the second one."""
    deployments = [deployment(canary={name: permille}), deployment("next")]
    first, second = system.replicas
    routed = [route(first), route(second, of="next")]
    await system.has_routes(await system.control.publish(deployments, routed))


async def test_a_share_of_the_requests_goes_to_the_canary_and_a_session_stays(
    start: Start,
) -> None:
    system = await start(scripts=(hello, hello))
    await with_canary(system, 300)
    for _ in range(2):
        for i in range(100):
            answer = await system.ask(chat(user=f"user {i}"))
            assert answer.status == 200
    first, second = system.replicas
    assert 30 <= len(second.calls) <= 90
    assert not users(first).keys() & users(second).keys()
    assert {call.request.model for call in second.calls} == {"mini"}


@pytest.mark.parametrize("canary", ["missing", "empty"])
async def test_a_canary_that_cannot_answer_is_passed_over(start: Start, canary: str) -> None:
    system = await start()
    deployments = [deployment(canary={canary: 1000}), deployment("empty")]
    routed = [route(system.replicas[0])]
    await system.has_routes(await system.control.publish(deployments, routed))
    for _ in range(5):
        assert (await system.ask(chat())).status == 200


@pytest.mark.parametrize(
    ("managed", "listed", "of_canary"), [(True, True, 0), (True, False, 5), (False, True, 5)]
)
async def test_a_canary_that_is_a_provider_outside_a_tenants_list_gets_none_of_its_requests(
    start: Start, *, managed: bool, listed: bool, of_canary: int
) -> None:
    acme = tenant("acme", keys=["sesame"], models=["mini"], fallbacks_listed=listed)
    system = await start(scripts=(hello, hello))
    first, second = system.replicas
    deployments = [deployment(canary={"next": 1000}), deployment("next", managed=managed)]
    routed = [route(first), route(second, of="next")]
    await system.has_routes(await system.control.publish(deployments, routed, tenants=[acme]))
    for i in range(5):
        answer = await system.ask(chat("Authorization: Bearer sesame\r\n", seed=i))
        assert answer.status == 200
    assert (len(first.calls), len(second.calls)) == (5 - of_canary, of_canary)


async def test_a_replica_that_refuses_connections_gets_no_more_than_a_probe(
    start: Start,
) -> None:
    in_turn = deployment(selection_policy="round_robin")
    system = await start("--threads", "1", scripts=(hello, hello), deployment=in_turn)
    await system.replicas[0].die()
    for _ in range(40):
        assert (await system.ask(chat())).status == 200
    assert counts(system) == [0, 40]
    report = await system.reports(lambda report: bool(report.doubts), "the doubt is told")
    (doubt,) = report.doubts
    assert doubt.replica_id == "r1"
    assert doubt.reason == "unreachable"
    assert 0 < doubt.for_ms <= 30_000
    assert await system.metric("penstock_gateway_failovers_total") <= 3


async def test_a_replica_that_answers_badly_is_left_alone_after_the_third_time(
    start: Start,
) -> None:
    in_turn = deployment(selection_policy="round_robin")
    bad = refuse(500, "engine_error", retry=True)
    system = await start("--threads", "1", scripts=(bad, hello), deployment=in_turn)
    for _ in range(40):
        assert (await system.ask(chat())).status == 200
    assert 3 <= len(system.replicas[0].calls) <= 4


async def test_a_replica_that_has_work_and_makes_nothing_is_suspected_and_told(
    start: Start,
) -> None:
    moving = deployment(
        selection_policy="least_loaded", limits=routes.Limits(progress_deadline_ms=300)
    )
    system = await start("--threads", "1", scripts=(hang, hello), deployment=moving)
    stuck = system.replicas[0]
    async with busy(system) as client:
        if not stuck.calls:  # the other one had it, and answered
            assert (await client.response()).status == 200
            await client.send(chat())
            await until(lambda: stuck.calls, "the call arrives")
        busy_load = inference.Load(
            state=inference.REPLICA_STATE_READY, max_running=256, running=1, calls=1, gateways=1
        )
        stuck.tell_load(busy_load)
        report = await system.reports(lambda report: bool(report.doubts), "the doubt is told")
        assert [(d.replica_id, d.reason) for d in report.doubts] == [("r1", "no_progress")]
        for _ in range(10):
            assert (await system.ask(chat())).status == 200
        assert len(stuck.calls) == 1
        client.leave()
        stuck.tell_load(inference.Load(state=inference.REPLICA_STATE_READY, tokens=5))
        await system.reports(lambda report: not report.doubts, "it has no work any more")
