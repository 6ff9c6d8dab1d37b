"""No client notices that its request is repeated, whatever becomes of that."""

from __future__ import annotations

import pytest

from tests.fakes.fake_control import deployment, route
from tests.fakes.fake_replica import FakeCall, Script, delta, hang, hello, refuse, unary_chat
from tests.fakes.waiting import until
from tests.gateway_cpp.blackbox.conftest import Start
from tests.gateway_cpp.blackbox.held import narrow_limits
from tests.gateway_cpp.blackbox.raw_http import chat
from tests.gateway_cpp.blackbox.shadowed import rule, shadowed

NARROW = deployment("next", limits=narrow_limits(10))


async def dies(call: FakeCall) -> None:
    """Begins an answer and breaks it off."""
    await call.send(unary_chat("Hello")[:10])
    await refuse(500, "engine_dead")(call)


@pytest.mark.parametrize("streamed", [False, True], ids=["unary", "stream"])
@pytest.mark.parametrize("script", [hang, dies, refuse(500, "sick")], ids=["hangs", "dies", "sick"])
async def test_the_answer_is_that_without_a_shadow(
    start: Start, script: Script, streamed: bool
) -> None:
    async with shadowed(start, scripts=(hello, script)) as made:
        shadowless = await made.system.ask(chat(model="mini", stream=streamed, user="a"))
        await until(lambda: made.next.calls, "it is repeated")
        await made.publish(rule(share_permille=0))
        plain = await made.system.ask(chat(model="mini", stream=streamed, user="a"))
        assert (shadowless.status, shadowless.body) == (plain.status, plain.body)
        assert shadowless.headers.keys() == plain.headers.keys()


async def test_a_client_does_not_wait_for_a_shadow_that_hangs(start: Start) -> None:
    async with shadowed(start, scripts=(hello, hang)) as made, made.system.client() as client:
        for i in range(6):
            assert (await client.ask(chat(seed=i))).status == 200
        await made.counted("concurrency", 2)
        assert len(made.next.calls) == 4


async def test_a_candidate_that_is_dead_is_told_as_errors(start: Start) -> None:
    async with shadowed(start) as made:
        await made.next.die()
        while not any(pair.candidate.error_code for pair in made.comparer.pairs):
            assert (await made.system.ask(chat())).status == 200
        assert made.comparer.pairs[-1].candidate.status >= 500


async def test_a_client_has_the_place_of_a_shadow_at_once(start: Start) -> None:
    async def hangs_for_shadows(call: FakeCall) -> None:
        await (hang if call.request.tenant_salt == "salt" else hello)(call)

    async with shadowed(start, scripts=(hello, hangs_for_shadows), candidate=NARROW) as made:
        assert (await made.system.ask(chat())).status == 200
        await until(lambda: made.next.calls, "the shadow has the place")
        answer = await made.system.ask(chat(model="next"))
        assert answer.status == 200
        assert answer.headers["x-penstock-queue-ms"] == "0"
        await until(lambda: made.next.calls[0].cancelled.is_set(), "the shadow is given up")
        await made.counted("preempted", 1)
        assert not made.comparer.pairs


async def test_a_shadow_waits_until_no_client_needs_the_place(start: Start) -> None:
    async def hangs_for_clients(call: FakeCall) -> None:
        await (hello if call.request.tenant_salt == "salt" else hang)(call)

    async with shadowed(start, scripts=(hello, hangs_for_clients), candidate=NARROW) as made:
        async with made.system.client() as client:
            await client.send(chat(model="next"))
            await until(lambda: made.next.calls, "the client has the place")
            assert (await made.system.ask(chat())).status == 200
            name = "penstock_gateway_shadow_in_flight"
            while await made.system.metric(name) != 1:
                await made.system.ask_status("/livez")
            assert len(made.next.calls) == 1
        (pair,) = await made.pairs(1)
        assert pair.candidate.queue_us > 0


async def test_what_a_client_left_is_repeated_and_marked(start: Start) -> None:
    async def begins(call: FakeCall) -> None:
        await call.send(delta("Hel"))
        await call.cancelled.wait()

    async with shadowed(start, scripts=(begins, hello)) as made:
        async with made.system.client() as client:
            await client.send(chat(stream=True))
            await client.head()
            await client.chunk()
        (pair,) = await made.pairs(1)
        assert list(pair.marks) == ["client_left"]
        assert pair.primary.body == delta("Hel")


async def test_what_went_to_a_canary_is_marked(start: Start) -> None:
    async with shadowed(start) as made:
        mini = deployment(canary={"next": 1000})
        version = await made.system.control.publish(
            [mini, deployment("next")],
            [route(made.mini), route(made.next, of="next")],
            shadows=[rule()],
            comparer_address=made.comparer.address,
        )
        await made.system.has_routes(version)
        await made.system.ask(chat())
        (pair,) = await made.pairs(1)
        assert list(pair.marks) == ["canary"]
        assert pair.primary.deployment == "next"
