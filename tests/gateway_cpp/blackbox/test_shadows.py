"""Requests that are repeated for our own sake: what the comparer gets of them."""

from __future__ import annotations

import json

import pytest

from penstock.v1 import common_pb2 as common
from penstock.v1 import shadow_pb2 as shadow
from tests.fakes.fake_control import deployment, tenant
from tests.fakes.fake_replica import FakeCall, refuse, unary_chat
from tests.fakes.shadow_share import is_asked_again, is_sampled
from tests.fakes.waiting import until
from tests.gateway_cpp.blackbox.conftest import Start
from tests.gateway_cpp.blackbox.raw_http import CHAT, chat
from tests.gateway_cpp.blackbox.shadowed import UID, rule, shadowed


async def goodbye(call: FakeCall) -> None:
    """Says something else than hello."""
    await call.send(unary_chat("Goodbye"))
    await call.finish()


@pytest.mark.parametrize("streamed", [False, True], ids=["unary", "stream"])
async def test_a_pair_has_both_answers_byte_for_byte(start: Start, streamed: bool) -> None:
    async with shadowed(start) as made:
        answer = await made.system.ask(chat(stream=streamed))
        (pair,) = await made.pairs(1)
        assert pair.primary.body == answer.body
        assert pair.candidate.body == answer.body
        assert json.loads(pair.body) == CHAT | {"stream": streamed}
        assert pair.request_id == answer.headers["x-request-id"]
        assert (pair.rule, pair.tenant) == (UID, "")
        assert not pair.HasField("again")
        assert pair.path == "/v1/chat/completions"
        assert (pair.primary.deployment, pair.primary.replica) == ("mini", "r1")
        assert (pair.candidate.deployment, pair.candidate.replica) == ("next", "r2")
        for told in (pair.primary, pair.candidate):
            assert (told.status, told.error_code, told.cut) == (200, "", False)
            assert told.model_version == "weights-1"
            assert told.usage == common.Usage(prompt_tokens=3, completion_tokens=2)
            assert 0 < told.ttft_us <= told.total_us
        assert not pair.marks
        await made.counted("paired", 1)


async def test_candidate_and_primary_again_are_each_sent_first_as_often(start: Start) -> None:
    """Who is sent first finds an idler engine: a model beside itself would look faster."""
    told = rule(candidate="mini", self_permille=1000, max_concurrent=100)
    async with shadowed(start, told=told) as made, made.system.client() as client:
        first = []
        for number in range(40):
            assert (await client.ask(chat(seed=number))).status == 200
            await made.pairs(number + 1)
            _, shadow, _ = made.mini.calls[3 * number :]
            first.append(shadow.request.tenant_salt)
        assert 5 < first.count("salt:self") < 35


async def test_a_shadow_is_asked_for_nobody_with_a_salt_of_its_own(start: Start) -> None:
    async with shadowed(start, told=rule(self_permille=1000)) as made:
        await made.system.ask(
            chat("traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01\r\n")
        )
        (pair,) = await made.pairs(1)
        assert (pair.candidate.deployment, pair.again.deployment) == ("next", "mini")
        (candidate,) = made.next.calls
        client, again = made.mini.calls
        assert candidate.request.body == again.request.body == client.request.body
        assert candidate.request.tenant_salt == "salt"
        assert again.request.tenant_salt == "salt:self"
        for call in (candidate, again):
            assert (call.request.traceparent, call.request.tenant) == ("", "")
            assert call.request.priority > 100
            assert call.request.request_id != client.request.request_id


async def test_a_pair_says_whether_its_client_ruled_out_that_others_answer(start: Start) -> None:
    async with shadowed(start) as made:
        await made.system.ask(chat())
        await made.pairs(1)
        await made.system.ask(chat("x-penstock-degrade: never\r\n"))
        assert [pair.confined for pair in await made.pairs(2)] == [False, True]


async def test_what_the_comparer_asks_is_asked_of_the_rules_judge_alone(start: Start) -> None:
    async with shadowed(start, told=rule(judge="next")) as made:
        body = json.dumps({**CHAT, "model": "next"}).encode()
        made.comparer.questions = [
            shadow.ShadowQuestion(
                id=name, rule=UID, deployment=name, path="/v1/chat/completions", body=body
            )
            for name in ("next", "mini")
        ]
        await made.system.ask(chat())
        await made.pairs(1)
        await until(lambda: len(made.comparer.replies) == 2, "both are replied to")
        told = {each.id: each for each in made.comparer.replies}
        assert told["mini"].outcome == "not_allowed"
        assert (told["next"].outcome, told["next"].answer.status) == ("", 200)
        assert told["next"].answer.deployment == "next"
        candidate, question = made.next.calls
        assert question.request.body == body
        assert question.request.tenant_salt == "salt:asked"
        assert question.request.priority == candidate.request.priority
        await made.counted("paired", 1)


async def test_what_is_sampled_can_be_told_from_the_seed(start: Start) -> None:
    told = rule(share_permille=300, self_permille=500, seed=42, max_concurrent=100)
    async with shadowed(start, told=told) as made:
        ids = []
        async with made.system.client() as client:
            for i in range(60):
                answer = await client.ask(chat(seed=i))
                ids.append(answer.headers["x-request-id"])
        expected = {i: is_asked_again(42, i, 500) for i in ids if is_sampled(42, i, 300)}
        assert 0 < len(expected) < 60
        assert set(expected.values()) == {True, False}
        pairs = await made.pairs(len(expected))
        assert {pair.request_id: pair.HasField("again") for pair in pairs} == expected
        assert len(pairs) == len(expected)


async def test_whole_sessions_are_sampled(start: Start) -> None:
    async with shadowed(start, told=rule(share_permille=500, by_session=True)) as made:
        names = [f"conversation-{i}" for i in range(10)]
        for name in names + names:
            await made.system.ask(chat(f"x-penstock-session: {name}\r\n"))
        sampled = [name for name in names if is_sampled(7, name, 500)]
        assert 0 < len(sampled) < 10
        pairs = await made.pairs(2 * len(sampled))
        assert len({pair.session for pair in pairs}) == len(sampled)
        assert len(made.next.calls) == 2 * len(sampled)


async def test_shadows_are_in_no_tenants_usage_and_in_no_deployments_metrics(
    start: Start,
) -> None:
    tenants = [tenant(keys=["secret"], limits={"requests_per_minute": 2})]
    async with shadowed(start, told=rule(self_permille=1000), tenants=tenants) as made:
        key = "authorization: Bearer secret\r\n"
        answer = await made.system.ask(chat(key))
        assert answer.status == 200
        (pair,) = await made.pairs(1)
        assert pair.tenant == "acme"
        report = await made.system.reports(
            lambda report: any(row.tenant == "_shadow" for row in report.usage), "their own usage"
        )
        rows = {(row.tenant, row.key_id, row.deployment): row.requests for row in report.usage}
        assert rows[("_shadow", UID, "next")] == rows[("_shadow", UID, "mini")] == 1
        told = {name: count for name, count in rows.items() if name[0] != "_shadow"}
        assert told in ({}, {("acme", "k1", "mini"): 1})
        last = await made.system.ask(chat(key))
        assert last.headers["x-ratelimit-remaining-requests"] == "0"
        metric = "penstock_gateway_requests_total"
        assert await made.system.metric(metric) == 2
        assert await made.system.metric("penstock_gateway_tenant_prompt_tokens_total") <= 6
        assert made.system.gateway.count_log("request settled") == 2


async def test_a_tenant_may_say_never(start: Start) -> None:
    tenants = [tenant(keys=["secret"], shadow_never=True)]
    async with shadowed(start, tenants=tenants) as made:
        await made.system.ask(chat("authorization: Bearer secret\r\n"))
        await made.counted("not_allowed", 1)
        assert not made.next.calls


@pytest.mark.parametrize(
    "kept",
    [tenant(keys=["secret"], degrade_never=True), tenant(keys=["secret"], models=["mini"])],
    ids=["degrade never", "models"],
)
async def test_a_provider_sees_nothing_of_tenants_that_keep_to_the_house(
    start: Start, kept: object
) -> None:
    cloud = deployment("next", managed=True)
    async with shadowed(start, candidate=cloud, tenants=[kept]) as made:  # type: ignore[list-item]
        await made.system.ask(chat("authorization: Bearer secret\r\n"))
        await made.counted("not_allowed", 1)
        assert not made.next.calls


async def test_bodies_are_kept_within_their_budget(start: Start) -> None:
    async with shadowed(start, "--shadow-bytes", "100") as made:
        answer = await made.system.ask(chat(user="x" * 100))
        assert answer.status == 200
        await made.counted("body_budget", 1)
        assert not made.next.calls


async def test_rates_hold(start: Start) -> None:
    async with shadowed(start, told=rule(max_per_minute=2)) as made:
        for _ in range(3):
            await made.system.ask(chat())
        await made.counted("rate", 1)
        assert len(await made.pairs(2)) == 2


async def test_an_error_is_an_answer(start: Start) -> None:
    sick = refuse(500, "engine_error")
    async with shadowed(start, scripts=(goodbye, sick)) as made:
        answer = await made.system.ask(chat())
        assert answer.status == 200
        (pair,) = await made.pairs(1)
        assert pair.primary.body == answer.body
        assert (pair.candidate.status, pair.candidate.error_code) == (500, "engine_error")


async def test_pairs_wait_for_a_comparer_that_is_away(start: Start) -> None:
    async with shadowed(start) as made:
        await made.system.ask(chat())
        await made.pairs(1)
        await made.counted("paired", 1)
        await made.comparer.die()
        for i in range(3):
            await made.system.ask(chat(seed=i))
        await until(lambda: len(made.next.calls) == 4, "all are repeated")
        await made.comparer.start_again()
        pairs = await made.pairs(4)
        assert len({pair.request_id for pair in pairs}) == len(pairs) == 4
        await made.counted("paired", 4)


async def test_what_was_not_acknowledged_comes_again(start: Start) -> None:
    async with shadowed(start) as made:
        made.comparer.counting.clear()
        await made.system.ask(chat())
        await made.pairs(1)
        await made.comparer.die()
        made.comparer.counting.set()
        await made.comparer.start_again()
        await made.counted("paired", 1)
        assert len(made.comparer.pairs) == 1


async def test_without_a_comparer_nothing_is_repeated(start: Start) -> None:
    async with shadowed(start, compares=False) as made:
        await made.system.ask(chat())
        await made.counted("no_comparer", 1)
        assert not made.next.calls
        await made.publish(rule())
        await made.system.ask(chat())
        await made.pairs(1)
