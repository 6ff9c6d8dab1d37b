"""A program behind its stream: asks, engine calls, decisions; and what no frame may do."""

from __future__ import annotations

import grpc.aio
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from penstock.control.router.asks import MOST_CALLS
from penstock.v1.router_pb2 import EngineCall, EngineReply, EngineVerb, GatewayFrame, RouteAsk
from tests.fakes.router_gateway import dialed, routing, view

SENDS = """
USES = {"prep_recv", "remote_send"}
async def route(request, engines, stats, *, end=None):
    kv, held = await engines.get("b").prep_recv(request, end)
    await engines.get("a").remote_send(kv, begin=held)
    return RouteDecision(engines.get("b"), kv)
"""


def program(body: str, head: str = "") -> str:
    """A program of that body."""
    return f"{head}\nasync def route(request, engines, stats, **args):\n    {body}\n"


def prepared(call: EngineCall) -> EngineReply:
    if call.verb == EngineVerb.ENGINE_VERB_PREP_RECV:
        return EngineReply(matched_len=32, end=96)
    return EngineReply(moved_tokens=64)


async def test_engine_calls_go_to_the_gateway_and_their_lease_into_the_decision() -> None:
    async with routing(SENDS, prepared) as gateway:
        decision = await gateway.decides(args=b'{"end": 100}')
    prep, send = gateway.calls
    assert (prep.replica_id, prep.end, prep.seq_id) == ("b", 100, "1")
    assert (send.replica_id, send.to_replica_id, send.seq_id) == ("a", "b", "1")
    assert (send.begin, send.end) == (32, 96)
    assert (decision.replica_id, decision.seq_id, decision.begin) == ("b", "1", 96)
    assert not decision.error


async def test_a_prompt_without_an_end_is_asked_for_whole() -> None:
    async with routing(SENDS, prepared) as gateway:
        await gateway.decides()
    assert gateway.calls[0].end == 2**32 - 1


async def test_many_requests_are_under_way_at_once_and_each_has_its_own_decision() -> None:
    text = program("return RouteDecision(request.session)")
    async with routing(text) as gateway:
        asked = {await gateway.ask(session="ab"[n % 2]): "ab"[n % 2] for n in range(50)}
        decided = [await gateway.decided() for _ in asked]
    assert {each.ask_id: each.replica_id for each in decided} == asked


async def test_what_was_recorded_is_there_for_later_requests() -> None:
    text = program(
        "n = stats.routing_stats('n').get('n', 0)\n"
        "    stats.record_routing_stats('n', {'n': n + 1})\n"
        "    return RouteDecision('ab'[n])"
    )
    async with routing(text) as gateway:
        assert [(await gateway.decides()).replica_id for _ in range(2)] == ["a", "b"]


@pytest.mark.parametrize(
    ("body", "error", "detail"),
    [
        ("return 7", "nonsense", "returned a int"),
        ("return RouteDecision('c')", "nonsense", "chose 'c', no engine of it"),
        ("return RouteDecision('a', 'x')", "nonsense", "kv is a str"),
        ("return RouteDecision('a', Kv('s', -1))", "nonsense", "begin"),
        ("return RouteDecision('a', Kv('s' * 65, 1))", "nonsense", "seq_id"),
        ("raise KeyError('a\\nb')", "raised", "KeyError: 'a\\nb' (line 3)"),
        ("raise SystemExit(3)", "raised", "SystemExit: 3 (line 3)"),
        ("import asyncio; raise asyncio.CancelledError", "raised", "CancelledError (line 3)"),
        ("return Nothing", "raised", "NameError: name 'Nothing' is not defined (line 3)"),
        ("await engines[0].lookup(request)", "raised", "not_in_uses: USES does not name lookup"),
    ],
)
async def test_a_program_that_fails_says_so_in_a_line(body: str, error: str, detail: str) -> None:
    async with routing(program(body)) as gateway:
        decision = await gateway.decides()
    assert (decision.error, decision.replica_id) == (error, "")
    assert detail in decision.detail


async def test_arguments_that_it_does_not_take_are_its_failure() -> None:
    async with routing(SENDS) as gateway:
        decision = await gateway.decides(args=b'{"ends": 1}')
    assert decision.error == "raised"
    assert "unexpected keyword argument 'ends'" in decision.detail


async def test_none_and_a_failed_engine_call_leave_it_to_the_gateway() -> None:
    async with routing(program("return None")) as gateway:
        decided = await gateway.decides()
    async with routing(SENDS, lambda _: EngineReply(error="no_kv_capacity")) as gateway:
        failed = await gateway.decides()
    assert (decided.error, decided.replica_id) == (failed.error, failed.replica_id) == ("", "")


async def test_a_program_may_catch_why_an_engine_call_failed() -> None:
    text = program(
        "try:\n        await engines[0].lookup(request)\n"
        "    except EngineCallError as error:\n"
        "        return RouteDecision('b' if error.cause == 'unavailable' else 'a')",
        "USES = ['lookup']",
    )
    async with routing(text, lambda _: EngineReply(error="unavailable")) as gateway:
        assert (await gateway.decides()).replica_id == "b"


async def test_a_request_makes_a_bounded_number_of_engine_calls() -> None:
    text = program("while True: await engines[0].lookup(request)", "USES = ['lookup']")
    async with routing(text) as gateway:
        decision = await gateway.decides()
    assert (decision.error, len(gateway.calls)) == ("raised", MOST_CALLS)


async def test_engine_calls_of_one_request_at_once_are_bounded() -> None:
    text = program(
        "from asyncio import gather\n"
        "    await gather(*(engines[0].lookup(request) for _ in range(17)))",
        "USES = ['lookup']",
    )
    async with routing(text) as gateway:
        decision = await gateway.decides()
    assert decision.error == "raised"
    assert "too_many_calls: 64 of one request, 16 at once" in decision.detail


async def test_a_frame_is_no_longer_than_a_gateway_takes() -> None:
    async with routing(program("raise ValueError('x' * 999)")) as gateway:
        asks = [RouteAsk(ask_id=n, program_digest=gateway.digest) for n in range(1, 900)]
        await gateway.send(GatewayFrame(asks=asks))
        decided = 0
        while decided < len(asks):
            frame = await gateway.stream.read()
            assert frame.ByteSize() < 256 << 10
            decided += len(frame.decisions)


async def test_a_program_of_another_digest_is_not_run() -> None:
    async with routing(program("return None")) as gateway:
        decision = await gateway.decides(program_digest="beef")
    assert (decision.error, decision.detail) == ("unknown_program", "beef")


async def test_a_cancelled_request_is_not_decided_and_calls_nobody_any_more() -> None:
    text = program(
        "if request.session: await __import__('asyncio').Event().wait()\n"
        "    return RouteDecision('a')"
    )
    async with routing(text) as gateway:
        asked = await gateway.ask(session="s")
        await gateway.send(GatewayFrame(cancels=[asked]))
        decision = await gateway.decides()
    assert decision.replica_id == "a"


async def test_who_shows_another_token_is_refused() -> None:
    async with routing(program("return None")) as gateway:
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            async with dialed(gateway.address, gateway.digest, token="other") as stranger:
                await stranger.decides()
    assert refused.value.code() is grpc.StatusCode.UNAUTHENTICATED


ids = st.integers(0, 3)
replies = st.builds(
    EngineReply,
    ask_id=ids,
    call_id=ids,
    error=st.sampled_from(["", "no_lease", "x" * 500]),
    matched_len=st.integers(0, 2**32 - 1),
    end=st.integers(0, 2**32 - 1),
)
asks = st.builds(
    RouteAsk,
    ask_id=ids,
    program_digest=st.sampled_from(["", "this"]),
    args=st.sampled_from([b"", b"{", b"[]", b'{"end": -1}', b'{"end": "x"}', b"\xff"]),
    engines=st.lists(st.builds(view, st.sampled_from(["a", "b", ""])), max_size=3),
)
frames = st.builds(
    GatewayFrame,
    asks=st.lists(asks, max_size=3),
    replies=st.lists(replies, max_size=3),
    cancels=st.lists(ids, max_size=3),
)


@settings(
    max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.lists(frames, max_size=6))
async def test_no_frames_keep_it_from_deciding_the_next_request(sent: list[GatewayFrame]) -> None:
    async with routing(SENDS, prepared) as gateway:
        for frame in sent:
            for ask in frame.asks:
                ask.program_digest = ask.program_digest and gateway.digest
            await gateway.send(frame)
        await gateway.send(GatewayFrame(cancels=[0, 1, 2, 3]))
        gateway.last = 10
        asked = await gateway.ask()
        while (decision := await gateway.decided()).ask_id != asked:
            pass
    assert decision.replica_id == "b"
