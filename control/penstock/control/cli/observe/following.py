"""`penstock requests -f`: what is kept, then what ends, over restarts of the head."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
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
# Of what ended while no head answered: so long before that it may have been received, so much of
# it is looked through, and so far apart gateways' clocks may be.
LONG_REQUEST = timedelta(minutes=10)
MOST_PAGES = 10
PAGE = 1000
CLOCKS = timedelta(seconds=5)


class RequestsOfHead(Protocol):
    """What is asked of a head."""

    async def requests(self, wanted: Mapping[str, str], *, limit: int) -> RequestPage:
        """The newest so many."""

    def follow_requests(self, wanted: Mapping[str, str]) -> AsyncIterator[TailEvent]:
        """Requests as they end. Raises `Unavailable`."""


class Following:
    """Shows what is kept, then what ends; a head that is started anew in between is waited for, and
    asked for what ended meanwhile."""

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
        self._ended: datetime | None = None  # the latest that was shown
        self._telling: Sequence[GatewayAnswer] = ()

    async def run(
        self, admin: RequestsOfHead, wanted: Mapping[str, str], since: str, last: int
    ) -> None:
        """Until it is ended; at first the `last` of those that are kept. Raises `Unavailable` where
        no head answers for long."""
        away = 0
        while True:
            try:
                begun = False
                async for told in admin.follow_requests(wanted):
                    away = 0
                    if not begun:  # from here on nothing ends unseen: now what had ended before
                        if self._ended:
                            await self._catch_up(admin, wanted, self._ended - CLOCKS)
                        else:
                            listed = {**wanted, "since": since} if since else wanted
                            self._show_all((await admin.requests(listed, limit=last)).requests)
                        begun = True
                    self._say(told)
            except Unavailable:
                away += 1
                if away > HEAD_AWAY:
                    raise
            await asyncio.sleep(self._again)

    async def _catch_up(
        self, admin: RequestsOfHead, wanted: Mapping[str, str], ended: datetime
    ) -> None:
        """Shows those that have ended since then, and says which may be missing."""
        since = ended - LONG_REQUEST
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
            typer.echo(f"{told}, as far as they ended while no head answered", err=True)
        self._show_all([each for each in found if _end(each) >= ended])

    def _say(self, told: TailEvent) -> None:
        if isinstance(told, RequestModel):
            self._show_all([told])
        elif isinstance(told, LeftOutModel):
            typer.echo(
                f"{told.left_out} that ended here are left out: they were too many", err=True
            )
        elif told != self._telling:
            self._who_tells(told)
            self._telling = told

    def _show_all(self, newest_first: Sequence[RequestModel]) -> None:
        for it in reversed(newest_first):
            if it.request_id in self._shown:
                continue
            self._shown[it.request_id] = None
            if len(self._shown) > REMEMBERED:
                del self._shown[next(iter(self._shown))]
            self._ended = max(self._ended or _end(it), _end(it))
            typer.echo(self._line(it))


def _end(it: RequestModel) -> datetime:
    return it.received_at + timedelta(milliseconds=it.duration_ms)
