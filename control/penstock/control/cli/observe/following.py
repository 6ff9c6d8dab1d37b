"""`penstock requests -f`: what is kept, then what ends, over restarts of the head."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Protocol

import typer

from penstock.control.admin.observe.request_models import LeftOutModel, RequestModel, RequestPage
from penstock.control.errors import Unavailable
from penstock.control.outside.request_client import TailEvent
from penstock.control.state.observe.asking import GatewayAnswer

ASK_AGAIN = timedelta(seconds=1)
HEAD_AWAY = 60  # times in a row
REMEMBERED = 2000  # requests that are not shown once more
# Of what ended while a gateway did not tell: so long before that it may have been received, so much
# of it is looked through, and so much of what had been told before with it.
LONG_REQUEST = timedelta(minutes=10)
MOST_PAGES = 10
PAGE = 1000
OVERLAP = timedelta(seconds=5)


class RequestsOfHead(Protocol):
    """What is asked of a head."""

    async def requests(self, wanted: Mapping[str, str], *, limit: int) -> RequestPage:
        """The newest so many."""

    def follow_requests(self, wanted: Mapping[str, str]) -> AsyncIterator[TailEvent]:
        """Requests as they end. Raises `Unavailable`."""


class Following:
    """Shows what is kept, then what ends; a head that is started anew in between is waited for, and
    gateways that did not tell for a while are asked for what ended meanwhile."""

    def __init__(
        self,
        shown: Callable[[RequestModel], str],
        who_tells: Callable[[Sequence[GatewayAnswer]], object],
        again: timedelta = ASK_AGAIN,
    ) -> None:
        """`shown`: a request as a line; `who_tells` says who does not."""
        self._line = shown
        self._who_tells = who_tells
        self._again = again.total_seconds()
        self._shown: dict[str, None] = {}
        self._answers: Sequence[GatewayAnswer] = ()
        self._telling: frozenset[str] = frozenset()
        # The latest end of what each gateway told without a gap, and of all in the beginning.
        self._reached: dict[str, datetime] = {}
        self._began: datetime | None = None

    async def run(
        self, admin: RequestsOfHead, wanted: Mapping[str, str], since: str, last: int
    ) -> None:
        """Until it is ended; at first the `last` of those that are kept. Raises `Unavailable` where
        no head answers for long."""
        listed = {**wanted, "since": since} if since else wanted
        away = 0
        while True:
            try:
                async for told in admin.follow_requests(wanted):
                    away = 0
                    if isinstance(told, RequestModel):
                        self._show(told)
                    elif isinstance(told, LeftOutModel):
                        left = f"{told.left_out} that ended here are left out: they were too many"
                        typer.echo(left, err=True)
                    else:  # from here on nothing of these ends unseen: now what had ended before
                        telling = frozenset(each.id for each in told if each.answered)
                        if self._began is None:
                            await self._begin(admin, listed, last)
                        elif come := telling - self._telling:
                            await self._catch_up(admin, wanted, come)
                        self._telling = telling
                        self._say(told)
            except Unavailable:
                away += 1
                if away > HEAD_AWAY:
                    raise
            self._telling = frozenset()
            await asyncio.sleep(self._again)

    async def _begin(self, admin: RequestsOfHead, listed: Mapping[str, str], last: int) -> None:
        found = (await admin.requests(listed, limit=last)).requests
        for each in reversed(found):
            self._show(each)
        self._began = max(map(_end, found), default=None)

    async def _catch_up(
        self, admin: RequestsOfHead, wanted: Mapping[str, str], come: Collection[str]
    ) -> None:
        """Shows those of these gateways that ended while they did not tell, and says which may be
        missing."""
        assert self._began
        reached = {each: self._began for each in come}
        reached |= {each: at - OVERLAP for each, at in self._reached.items() if each in come}
        since = min(reached.values()) - LONG_REQUEST
        asked, found = {**wanted, "since": f"{since:%Y-%m-%dT%H:%M:%SZ}"}, list[RequestModel]()
        for _ in range(MOST_PAGES):
            page = await admin.requests(asked, limit=PAGE)
            found += page.requests
            if page.next is None:
                break
            asked["after"] = page.next
        else:
            until = found[-1].received_at if found else since
            told = f"requests of {since:%H:%M:%S} to {until:%H:%M:%S} are left out"
            typer.echo(f"{told}, as far as they ended while nobody told of them", err=True)
        for each in reversed(found):
            if each.gateway in come and _end(each) >= reached[each.gateway]:
                self._show(each)
        for gateway in come:
            ends = [_end(each) for each in found if each.gateway == gateway]
            self._reached[gateway] = max([self._reached.get(gateway, self._began), *ends])

    def _say(self, told: Sequence[GatewayAnswer]) -> None:
        if told != self._answers:
            self._who_tells(told)
            self._answers = told

    def _show(self, it: RequestModel) -> None:
        if it.gateway in self._telling:
            self._reached[it.gateway] = max(self._reached.get(it.gateway, _end(it)), _end(it))
        if it.request_id in self._shown:
            return
        self._shown[it.request_id] = None
        if len(self._shown) > REMEMBERED:
            del self._shown[next(iter(self._shown))]
        typer.echo(self._line(it))


def _end(it: RequestModel) -> datetime:
    return it.received_at + timedelta(milliseconds=it.duration_ms)
