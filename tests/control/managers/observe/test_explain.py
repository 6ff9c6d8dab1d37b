"""All gateways are asked at once: what comes together, and what is said of those that do not."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from datetime import timedelta

import pytest

from penstock.control.errors import InvalidInput, NotAdmitted, NotFound, Unavailable
from penstock.control.managers.cluster import Cluster
from penstock.control.managers.observe.explain import MOST_OF_AN_ID, MOST_TAILS, ExplainManager
from penstock.control.managers.observe.link import MOST_UNSENT, GatewayLink, Reply
from penstock.control.managers.observe.tail import MOST_AT_ONCE, MOST_WAITING
from penstock.control.outside.clock import SystemClock
from penstock.control.state.cluster import Gateway, GatewayState
from penstock.control.state.observe.asking import RequestFilter
from tests.fakes.explaining_gateway import (
    ExplainingGateway,
    endless,
    huge,
    record,
    silent,
)
from tests.fakes.waiting import until

ALL = RequestFilter(limit=100)


class Hasty(SystemClock):
    """Nobody sleeps by it."""

    async def sleep(self, duration: timedelta) -> None:
        await asyncio.sleep(0)


@asynccontextmanager
async def asking(
    *gateways: ExplainingGateway, within: timedelta = timedelta(seconds=2)
) -> AsyncIterator[ExplainManager]:
    """A head that these can be asked by, and that knows two more."""
    cluster = Cluster()
    view = cluster.view().with_gateway(Gateway("gone", GatewayState.SILENT))
    cluster.replace(view.with_gateway(Gateway("old", GatewayState.REMOTE)))
    explain = ExplainManager(cluster, Hasty(), within)
    async with asyncio.TaskGroup() as tasks:
        lives = [tasks.create_task(each.beside(explain)) for each in gateways]
        await asyncio.sleep(0)  # each has opened its stream
        yield explain
        for life in lives:
            life.cancel()


async def listed(explain: ExplainManager, wanted: RequestFilter = ALL) -> list[str]:
    found = await explain.listed(wanted, None)
    return [each.record.request_id for each in found.kept]


async def test_what_all_keep_is_told_in_one_order_and_who_is_missing() -> None:
    one = ExplainingGateway("gw-1", record("req_1", 10), record("req_3", 30))
    two = ExplainingGateway("gw-2", record("req_2", 20), record("req_4", 40))
    async with asking(two, one) as explain:
        found = await explain.listed(ALL, None)
    told = [(each.record.request_id, each.gateway) for each in found.kept]
    assert told == [("req_4", "gw-2"), ("req_3", "gw-1"), ("req_2", "gw-2"), ("req_1", "gw-1")]
    assert found.next is None
    assert [(each.id, each.answered, each.detail) for each in found.gateways] == [
        ("gone", False, "it is silent"),
        ("gw-1", True, ""),
        ("gw-2", True, ""),
        ("old", False, "it has no stream to be asked by: it lost it, or is of an older version"),
    ]
    assert found.gateways[1].kept_since is not None
    assert found.gateways[1].kept_since.microsecond == 10


async def test_pages_over_several_gateways_leave_nothing_out_and_tell_nothing_twice() -> None:
    # Many have the same microsecond, more than a page has, and one gateway has only old ones.
    new = [record(f"req_{n:02}", 100 + n // 16) for n in range(48)]
    old = ExplainingGateway("gw-3", *(record(f"req_old_{n}", 50) for n in range(3)))
    gateways = ExplainingGateway("gw-1", *new[::2]), ExplainingGateway("gw-2", *new[1::2]), old
    async with asking(*gateways) as explain:
        told: list[str] = []
        place, pages = None, 0
        while pages == 0 or place:
            found = await explain.listed(RequestFilter(limit=5), place)
            told += [each.record.request_id for each in found.kept]
            place, pages = found.next, pages + 1
    expected = [f"req_{n:02}" for n in reversed(range(48))]
    assert told == [*expected, "req_old_2", "req_old_1", "req_old_0"]


async def test_one_that_is_slow_is_named_and_its_answer_is_passed_over_when_it_comes() -> None:
    slow = ExplainingGateway("gw-1", record("req_1"))
    quick = ExplainingGateway("gw-2", record("req_2"))
    slow.answer = silent
    async with asking(slow, quick, within=timedelta(milliseconds=50)) as explain:
        found = await explain.listed(ALL, None)
        assert [each.gateway for each in found.kept] == ["gw-2"]
        told = {each.id: each.detail for each in found.gateways}
        assert told["gw-1"] == "it did not answer within 0.05 s"
        for late in slow.as_asked(slow.asked[0]):
            slow.tell(late)
        slow.answer = slow.as_asked
        assert len(await listed(explain)) == 2


async def test_one_that_ends_while_it_is_asked_is_named_at_once() -> None:
    gateway = ExplainingGateway()
    gateway.answer = silent
    async with asking(gateway) as explain, asyncio.TaskGroup() as tasks:
        asked = tasks.create_task(explain.listed(ALL, None))
        await until(lambda: gateway.asked, "the question")
        explain.connect("gw-1", "i2")  # its next life
        told = {each.id: each.detail for each in (await asked).gateways}
        assert told["gw-1"] == "its stream ended before it had answered"


async def test_the_next_life_of_a_gateway_is_asked_and_the_end_of_the_last_takes_nothing() -> None:
    last, following = ExplainingGateway(), ExplainingGateway("gw-1", record("req_new"))
    following.instance = "i2"
    async with asking(last, following) as explain:
        await asyncio.sleep(0)
        assert await listed(explain) == ["req_new"]
        assert last.asked == []


async def test_of_two_processes_of_one_id_the_one_whose_place_was_taken_is_refused() -> None:
    async with asking() as explain:
        explain.connect("gw-1", "i1")
        second = explain.connect("gw-1", "i2")
        for _ in range(2):
            with pytest.raises(NotAdmitted, match="gw-1 is not let in: another process has its id"):
                explain.connect("gw-1", "i1")
        second = explain.connect("gw-1", "i2")  # its stream broke, which is no flip
        explain.disconnect(second)
        explain.disconnect(explain.connect("gw-1", "i1"))


async def test_no_more_is_taken_than_was_asked_for() -> None:
    gateway = ExplainingGateway()
    gateway.answer = endless
    async with asking(gateway) as explain:
        assert len(await listed(explain, RequestFilter(limit=1000))) == 1000
        assert len((await explain.found("req")).kept) == MOST_OF_AN_ID


async def test_a_record_that_is_none_is_left_out() -> None:
    gateway = ExplainingGateway()
    gateway.answer = huge
    async with asking(gateway) as explain:
        assert await listed(explain) == ["req_c", "req_a"]


async def test_what_nobody_asked_is_refused() -> None:
    with pytest.raises(InvalidInput, match="it answers question 7, and was asked 0"):
        GatewayLink("gw-1", "i1").take(Reply(7, records=(), count=0))


async def test_one_that_takes_no_questions_is_given_a_bounded_number() -> None:
    async with asking(within=timedelta(milliseconds=20)) as explain:
        link = explain.connect("gw-1", "i1")  # and nobody reads its questions
        for _ in range(3):
            asked = (explain.listed(ALL, None) for _ in range(MOST_UNSENT + 1))
            *taken, beyond = [each.gateways[1].detail for each in await asyncio.gather(*asked)]
            assert set(taken) == {"it did not answer within 0.02 s"}
            assert beyond == f"it takes no questions: {MOST_UNSENT} wait for it"
        explain.disconnect(link)


async def test_one_request_is_found_by_our_id_and_by_its_callers_the_newest_first() -> None:
    one = ExplainingGateway("gw-1", record("req_1", 10, client_request_id="mine"))
    two = ExplainingGateway("gw-2", record("req_2", 20, client_request_id="mine"))
    async with asking(one, two) as explain:
        assert [each.gateway for each in (await explain.found("req_1")).kept] == ["gw-1"]
        found = (await explain.found("mine")).kept
        assert [each.record.request_id for each in found] == ["req_2", "req_1"]


async def test_who_calls_a_request_by_anothers_id_hides_nothing_of_it() -> None:
    gateway = ExplainingGateway(
        "gw-1", record("req_1", 10), record("req_2", 20, client_request_id="req_1")
    )
    async with asking(gateway) as explain:
        found = (await explain.found("req_1")).kept
    assert [each.record.request_id for each in found] == ["req_1", "req_2"]


async def test_where_none_has_it_each_says_since_when_it_keeps_them_or_that_it_is_gone() -> None:
    gateway = ExplainingGateway("gw-1", record("req_1", 1_000_000))
    async with asking(gateway, ExplainingGateway("gw-2")) as explain:
        with pytest.raises(NotFound) as error:
            await explain.found("req_9")
    assert error.value.code == "unknown-request"
    assert str(error.value) == (
        "no gateway keeps a request 'req_9': gone: it is silent; gw-1 keeps those since"
        " 1970-01-01 00:00:01 UTC; gw-2 keeps none; old: it has no stream to be asked by:"
        " it lost it, or is of an older version"
    )


async def test_where_nobody_answers_nobody_says_that_there_is_none() -> None:
    async with asking() as explain:
        with pytest.raises(Unavailable, match="no gateway answers: gone: it is silent; old: "):
            await explain.found("req_1")


async def test_a_follower_has_what_ends_from_now_on_of_those_that_come_later_too() -> None:
    one, two = ExplainingGateway("gw-1", record("req_0")), ExplainingGateway("gw-2")
    async with asking(one) as explain, aclosing(explain.follow(ALL)) as told:
        first = await anext(told)
        assert first.gateways is not None
        assert [(each.id, each.answered) for each in first.gateways] == [
            ("gone", False), ("gw-1", True), ("old", False),
        ]  # fmt: skip
        await until(lambda: one.tails, "the first to be followed")
        await one.end(record("req_1"))
        assert [each.record.request_id for each in (await anext(told)).kept] == ["req_1"]
        async with asyncio.TaskGroup() as tasks:
            life = tasks.create_task(two.beside(explain))
            await until(lambda: two.tails, "the second to be followed")
            await two.end(record("req_2"))
            followed = await anext(told)
            assert [each.gateway for each in followed.kept] == ["gw-2"]
            assert followed.gateways is not None
            life.cancel()
        gone = (await anext(told)).gateways
        assert gone is not None
        assert "gw-2" not in [each.id for each in gone]


async def test_a_follower_that_is_slow_loses_what_comes_and_is_told_how_much() -> None:
    gateway, more = ExplainingGateway(), 250
    async with asking(gateway) as explain, aclosing(explain.follow(ALL)) as told:
        await anext(told)
        await until(lambda: gateway.tails, "the tail")
        for n in range(MOST_WAITING + more):
            await gateway.end(record(f"req_{n}"), left_out=int(n == 0))
        kept, left_out = [], 0
        while not left_out:
            followed = await anext(told)
            assert len(followed.kept) <= MOST_AT_ONCE
            kept += [each.record.request_id for each in followed.kept]
            left_out = followed.left_out
    assert kept == [f"req_{n}" for n in range(MOST_WAITING)]
    assert left_out == more + 1


async def test_a_gateway_need_tell_no_more_once_its_follower_has_gone() -> None:
    gateway = ExplainingGateway()
    async with asking(gateway) as explain:
        async with aclosing(explain.follow(ALL)) as told:
            await anext(told)
            await until(lambda: gateway.tails, "the tail")
        await until(lambda: not gateway.tails, "its end")
        assert gateway.asked[-1].forget == gateway.asked[0].number


async def test_so_many_follow_at_a_time_and_all_end_with_the_head() -> None:
    async with asking() as explain:
        followers = [explain.follow(ALL) for _ in range(MOST_TAILS)]
        for each in followers:
            await anext(each)
        with pytest.raises(Unavailable, match="16 follow requests already"):
            await anext(explain.follow(ALL))
        explain.close()
        for each in followers:
            assert len([told async for told in each]) <= 1
