"""Which replicas get more than others: those with the adapter, those that are near, old ones."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import Any

import pytest

from penstock.v1 import inference_pb2 as inference
from penstock.v1 import routes_pb2 as routes
from tests.fakes.fake_control import deployment, route
from tests.fakes.fake_replica import FakeCall, FakeReplica, hello
from tests.fakes.waiting import until
from tests.gateway_cpp.blackbox.conftest import Start, System
from tests.gateway_cpp.blackbox.held import Held, busy, narrow
from tests.gateway_cpp.blackbox.raw_http import chat
from tests.gateway_cpp.blackbox.test_selection import POLICIES, THREE, counts


def with_pirate(policy: str, **limits: Any) -> routes.DeploymentRoute:
    """`mini` with an adapter that any replica may load."""
    return deployment(
        adapters={"pirate": "pirate@1"},
        selection_policy=policy,
        limits=routes.Limits(max_queued=9, **limits),
    )


def holds(replica: FakeReplica, *adapters: str) -> None:
    """It says that it has loaded these."""
    replica.tell_load(
        inference.Load(
            state=inference.REPLICA_STATE_READY, max_running=256, adapters=adapters, gateways=1
        )
    )


async def go_to(system: System, replica: FakeReplica, times: int = 10) -> None:
    """Waits until so many in a row go there: what a replica tells is heard some time later."""
    in_a_row = 0
    async with asyncio.timeout(20):
        while in_a_row < times:
            before = len(replica.calls)
            # Each of a session of its own: a session stays where it is.
            data = chat(model="mini:pirate", user=f"user {sum(counts(system))}")
            assert (await system.ask(data)).status == 200
            in_a_row = in_a_row + 1 if len(replica.calls) > before else 0


@pytest.mark.parametrize("policy", POLICIES)
async def test_requests_for_an_adapter_go_where_it_is_loaded_and_follow_it(
    start: Start, policy: str
) -> None:
    system = await start(scripts=THREE, deployment=with_pirate(policy))
    _, second, third = system.replicas
    holds(second, "poet@1", "pirate@1")
    await go_to(system, second)
    assert second.calls[-1].request.adapter == "pirate@1"
    holds(third, "pirate@1")
    holds(second, "poet@1")
    await go_to(system, third)


async def test_the_base_model_is_asked_for_wherever_adapters_are(start: Start) -> None:
    system = await start(scripts=THREE, deployment=with_pirate("round_robin"))
    holds(system.replicas[1], "pirate@1")
    await go_to(system, system.replicas[1])
    before = counts(system)
    for _ in range(30):
        assert (await system.ask(chat())).status == 200
    grown = [now - then for now, then in zip(counts(system), before, strict=True)]
    assert max(grown) <= 15, grown  # in turn, as far as the adapter has left it turns


async def test_what_the_holder_of_an_adapter_has_no_room_for_goes_elsewhere(start: Start) -> None:
    held = Held()

    async def script(call: FakeCall) -> None:
        await (held if call.json["user"] == "long" else hello)(call)

    limited = with_pirate("power_of_two", max_ongoing=2)
    system = await start(scripts=(script, script, script), deployment=limited)
    holder = system.replicas[1]
    holds(holder, "pirate@1")
    await go_to(system, holder)
    long, short = (chat(model="mini:pirate", user=name) for name in ("long", "short"))
    async with busy(system, long), busy(system, long):
        assert [call.json["user"] for call in holder.calls[-2:]] == ["long", "long"]
        full = len(holder.calls)
        for _ in range(10):
            assert (await system.ask(short)).status == 200
        assert len(holder.calls) == full
        held.let_go(2)
        await go_to(system, holder)


@pytest.mark.parametrize("flag", ["--node", "--zone"])
async def test_replicas_that_are_near_are_preferred_and_others_take_the_rest(
    start: Start, flag: str
) -> None:
    limited = deployment(limits=routes.Limits(max_ongoing=2, max_queued=9))
    held = Held()
    system = await start(flag, "here", scripts=(held, held, held), deployment=limited)
    first, second, third = system.replicas
    near = route(second, node="here") if flag == "--node" else route(second, zone="here")
    routed = [route(first), near, route(third)]
    await system.has_routes(await system.control.publish([limited], routed))
    held.let_go(10)
    for _ in range(10):
        assert (await system.ask(chat())).status == 200
    assert counts(system) == [0, 10, 0]
    async with busy(system), busy(system), busy(system), busy(system):
        assert len(second.calls) <= 12
        assert sum(counts(system)) == 14
        held.let_go(4)


@pytest.mark.parametrize("policy", POLICIES)
async def test_a_new_replica_gets_few_calls_at_first(start: Start, policy: str) -> None:
    named = deployment(selection_policy=policy)
    system = await start(deployment=named)
    (old,) = system.replicas
    assert (await system.ask(chat())).status == 200
    async with FakeReplica("new") as new:
        routed = [route(old), route(new)]
        await system.has_routes(await system.control.publish([named], routed))
        for _ in range(60):
            assert (await system.ask(chat())).status == 200
        assert len(new.calls) + len(old.calls) == 61
        assert len(new.calls) < len(old.calls) / 3


def of_its_own(policy: str, number: int) -> bytes:
    """A request of a session, or with a prefix, that no other one has."""
    if policy == "session":
        return chat(user=f"user {number}")
    return chat(messages=[{"role": "system", "content": f"{number} " * 400}])


@pytest.mark.parametrize("policy", ["prefix_aware", "session"])
async def test_a_new_replica_has_few_calls_at_once_at_first_however_many_belong_to_it(
    start: Start, policy: str
) -> None:
    held = Held()
    named = deployment(selection_policy=policy, limits=routes.Limits(max_ongoing=64))
    system = await start(scripts=(held,), deployment=named)
    (old,) = system.replicas
    async with FakeReplica("new", held) as new, AsyncExitStack() as stack:
        routed = [route(old), route(new)]
        await system.has_routes(await system.control.publish([named], routed))
        clients = [await stack.enter_async_context(system.client()) for _ in range(60)]
        for number, client in enumerate(clients):
            await client.send(of_its_own(policy, number))
        await until(lambda: len(old.calls) + len(new.calls) == 60, "all calls arrive")
        assert 0 < len(new.calls) < len(old.calls) / 3
        held.let_go(60)
        for client in clients:
            assert (await client.response()).status == 200


async def test_a_new_replica_has_its_whole_share_after_a_while(start: Start) -> None:
    in_turn = deployment(selection_policy="round_robin")
    system = await start("--threads", "1", deployment=in_turn)
    (old,) = system.replicas
    async with FakeReplica("new") as new:
        routed = [route(old), route(new)]
        await system.has_routes(await system.control.publish([in_turn], routed))
        got = 0
        async with asyncio.timeout(60):
            while got != 10:
                before = len(new.calls)
                for _ in range(20):
                    assert (await system.ask(chat())).status == 200
                got = len(new.calls) - before
                await asyncio.sleep(0.2)  # its share grows with time, whoever asks


async def test_a_new_replica_gets_more_where_nobody_else_has_room(start: Start) -> None:
    held = Held()
    system = await start(scripts=(held,), deployment=narrow(max_queued=0))
    (old,) = system.replicas
    async with FakeReplica("new") as new, busy(system):
        routed = [route(old), route(new)]
        await system.has_routes(await system.control.publish([narrow(max_queued=0)], routed))
        for _ in range(10):
            assert (await system.ask(chat())).status == 200
        assert len(new.calls) == 10
        held.let_go()
