"""What who follows requests is shown when the head has been away."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from datetime import timedelta

import pytest

from penstock.control.admin.observe.request_models import RequestModel, RequestPage
from penstock.control.cli.observe.following import MOST_PAGES, Following
from penstock.control.errors import Unauthenticated, Unavailable
from penstock.control.outside.request_client import TailEvent
from penstock.control.rpc.explain_wire import reply
from penstock.control.state.observe.asking import GatewayAnswer, Kept
from penstock.v1 import explain_pb2
from tests.fakes.control_values import NOON
from tests.fakes.explaining_gateway import record

NOON_US = int(NOON.timestamp()) * 1_000_000


def ended(request_id: str, second: int = 0, took: int = 0) -> RequestModel:
    """A request that was received so long after noon, and took so many seconds."""
    told = record(request_id, NOON_US + second * 1_000_000, duration_us=took * 1_000_000)
    said = reply(explain_pb2.ExplainReply(question=1, records=[told]), "gw-1")
    (found,) = said.records
    return RequestModel.of(Kept(found, "gw-1"))


TELLS = [GatewayAnswer("gw-1", answered=True)]


class AwayHead:
    """Keeps one, tells `first`, is away, and comes back when `kept` have ended, the newest first;
    the gateway comes a little later."""

    def __init__(self, first: RequestModel, kept: list[RequestModel], *, endless: bool) -> None:
        self._first = first
        self._kept = kept
        self._endless = endless
        self._lives = 0
        self.asked: list[Mapping[str, str]] = []

    async def requests(self, wanted: Mapping[str, str], *, limit: int) -> RequestPage:
        self.asked.append(dict(wanted))
        old = [ended("req_0", 1, took=1)]
        kept = (self._kept if "after" not in wanted else []) if self._lives == 3 else old
        more = self._lives == 3 and (self._endless or "after" not in wanted)
        return RequestPage(requests=kept, next="on" if more else None, gateways=[])

    async def follow_requests(self, wanted: Mapping[str, str]) -> AsyncIterator[TailEvent]:
        self._lives += 1
        if self._lives == 2:
            raise Unavailable("it is away")
        if self._lives == 4:
            raise Unauthenticated("the test is over")
        if self._lives == 1:
            yield TELLS
            yield self._first
            return
        yield [replace(TELLS[0], answered=False)]
        yield ended("req_4", 50)  # it tells again, which its head says only now
        yield TELLS


async def followed(head: AwayHead) -> None:
    following = Following(lambda it: it.request_id, lambda told: None, timedelta(0))
    with pytest.raises(Unauthenticated):
        await following.run(head, {"tenant": "acme"}, "1h", 7)


async def test_what_ended_while_the_head_was_away_is_shown_on_all_its_pages(
    capsys: pytest.CaptureFixture[str],
) -> None:
    first = ended("req_1", 30, took=2)
    kept = [ended("req_3", 40), first, ended("req_2", took=60), ended("req_9", 3, took=1)]
    head = AwayHead(first, kept, endless=False)
    await followed(head)
    out, err = capsys.readouterr()
    assert (out.split(), err) == (["req_0", "req_1", "req_4", "req_2", "req_3"], "")
    assert head.asked[0] == {"tenant": "acme", "since": "1h"}
    since = {"tenant": "acme", "since": f"{NOON - timedelta(minutes=9, seconds=33):%Y-%m-%dT%TZ}"}
    assert head.asked[1:] == [since, {**since, "after": "on"}]


async def test_where_more_ended_than_is_looked_through_it_says_of_when(
    capsys: pytest.CaptureFixture[str],
) -> None:
    head = AwayHead(ended("req_1", 30), [ended("req_2", 45)], endless=True)
    await followed(head)
    assert "requests of 11:50:25 to 12:00:45 are left out" in capsys.readouterr().err
    assert len(head.asked) == 1 + MOST_PAGES
