"""Asks all gateways at once what they decided about requests, and says who did not answer.

Nothing is kept here: what a gateway has forgotten is forgotten, and one that is gone took with it
what it knew.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from penstock.control.errors import Code, NotAdmitted, NotFound, Unavailable
from penstock.control.managers.cluster import Cluster
from penstock.control.managers.observe.link import GatewayLink
from penstock.control.managers.observe.tail import Followed, Tail
from penstock.control.state.cluster import Gateway, GatewayState
from penstock.control.state.observe.asking import (
    GatewayAnswer,
    Kept,
    KeptRecords,
    Place,
    RequestFilter,
    page_of,
)
from penstock.control.supervision.clock import Clock

log = logging.getLogger(__name__)

WITHIN: Final = timedelta(seconds=2)
MOST_TAILS: Final = 16
LEAST_LISTED: Final = 100  # that a gateway is asked for
MOST_LISTED: Final = 1000  # that it tells at once
MOST_OF_AN_ID: Final = 20  # of one gateway: callers may use theirs again
MOST_LIVES: Final = 8  # of a gateway, that are remembered
STILL_THERE: Final = timedelta(seconds=10)  # a follower is told something at least so often
# Between what a follower is given: a thousand a second are enough for anybody, and leave the head
# its time.
PAUSE: Final = timedelta(milliseconds=100)
# Why a gateway has no stream, where its state tells.
_AWAY: Final[Mapping[GatewayState, str]] = {
    GatewayState.STARTING: "it starts",
    GatewayState.BACKOFF: "it has ended, and with it what it kept; it is started again",
    GatewayState.STOPPED: "it has ended, and with it what it kept",
    GatewayState.SILENT: "it is silent",
    GatewayState.UNRESPONSIVE: "it gives no sign of life",
}
_NO_STREAM: Final = "it has no stream to be asked by: it lost it, or is of an older version"
_NO_TAIL: Final = "it tells no more: it has ended that by itself, or takes no questions"
_TWICE: Final = (
    "another process has its id and its stream, so that what this one decides cannot be asked for:"
    " give each an id of its own"
)
_Answers = list[tuple[GatewayAnswer, KeptRecords]]


@dataclass(frozen=True, slots=True)
class Listed:
    """A part of what all keep, the newest first."""

    kept: Sequence[Kept]
    next: Place | None  # where to go on; None: that is all
    gateways: Sequence[GatewayAnswer]


@dataclass(frozen=True, slots=True)
class Found:
    """All that have an id, at least one: first the one that we gave it to, then the newest."""

    kept: Sequence[Kept]
    gateways: Sequence[GatewayAnswer]


class ExplainManager:
    """From its making on."""

    def __init__(self, cluster: Cluster, clock: Clock, within: timedelta = WITHIN) -> None:
        self._cluster = cluster
        self._clock = clock
        self._within = within
        self._links: dict[str, GatewayLink] = {}
        # Of each that has one: instances whose streams it took the place of.
        self._earlier: dict[str, tuple[str, ...]] = {}
        self._tails: set[Tail] = set()
        self._closed = False

    def connect(self, gateway: str, instance: str) -> GatewayLink:
        """A gateway has opened a stream: it counts from here on, and an older one of it ends.
        Raises `NotAdmitted` for a process whose place another one has taken: both of them live."""
        if before := self._links.get(gateway):
            earlier = self._earlier.get(gateway, ())
            if instance != before.instance and instance in earlier:
                self._cluster.liveness.refuse(f"gateway {gateway}", _TWICE, self._clock.steady())
                raise NotAdmitted(f"gateway {gateway} is not let in: {_TWICE}")
            if instance != before.instance:
                self._earlier[gateway] = (*earlier[1 - MOST_LIVES :], before.instance)
            before.end()
        link = self._links[gateway] = GatewayLink(gateway, instance)
        for tail in self._tails:
            link.follow(tail)
            tail.changed()
        log.info("gateway can be asked", extra={"gateway": gateway, "instance": instance})
        return link

    def knows(self, gateway: str) -> bool:
        """Whether it has reported: what only says a name is none."""
        return gateway in self._cluster.view().gateways

    @property
    def connected(self) -> frozenset[str]:
        """Gateways that can be asked."""
        return frozenset(self._links)

    def disconnect(self, link: GatewayLink) -> None:
        """It has ended."""
        if self._links.get(link.gateway) is link:
            del self._links[link.gateway]
            self._earlier.pop(link.gateway, None)
        link.end()

    async def listed(self, wanted: RequestFilter, after: Place | None) -> Listed:
        """The newest `limit`, or those behind a place."""
        # One more, which is that of the place itself, or says that there are others; and of one
        # microsecond as many as there may be, since no place is asked for within it.
        asked = replace(wanted, limit=min(max(wanted.limit + 1, LEAST_LISTED), MOST_LISTED))
        asked = replace(asked, before_us=after.before_us) if after else asked
        answers = await self._ask(lambda link: link.list(asked))
        told = [(answer.id, said) for answer, said in answers]
        page = page_of(told, wanted.limit, after)
        return Listed(page.kept, page.next, [answer for answer, _ in answers])

    async def found(self, request_id: str) -> Found:
        """Those that have this id: ours, their caller's, or their trace's. Raises
        `unknown-request`, and `Unavailable` where nobody answers."""
        answers = await self._ask(lambda link: link.find(request_id, MOST_OF_AN_ID))
        gateways = [answer for answer, _ in answers]
        kept = [Kept(record, answer.id) for answer, said in answers for record in said.records]
        told = _listed(gateways, self._cluster.view().gateways)
        if not any(answer.answered for answer in gateways):
            raise Unavailable(f"no gateway answers{told}")
        if not kept:
            raise NotFound(f"no gateway keeps a request {request_id!r}{told}", Code.UNKNOWN_REQUEST)

        def rank(each: Kept) -> tuple[bool, Place]:
            return each.record.request_id == request_id, each.place  # nobody chooses our ids

        return Found(sorted(kept, key=rank, reverse=True), gateways)

    async def follow(self, wanted: RequestFilter) -> AsyncGenerator[Followed, None]:
        """What ends from now on, and at once who tells of it; ends with the head. Raises
        `Unavailable`."""
        if self._closed:
            raise Unavailable("this head ends: ask the next one")
        if len(self._tails) >= MOST_TAILS:
            raise Unavailable(f"{MOST_TAILS} follow requests already: end one of them first")
        tail = Tail(wanted)
        self._tails.add(tail)
        for link in self._links.values():
            link.follow(tail)
        try:
            ends = False
            while not ends:
                await tail.wait(STILL_THERE)
                ends = self._closed
                followed = tail.given(lambda: self._telling(tail))
                yield followed
                if followed.kept:
                    await self._clock.sleep(PAUSE)
        finally:
            self._tails.discard(tail)
            for link in self._links.values():
                link.forget(tail)

    def close(self) -> None:
        """Sends everybody away who follows: the head ends."""
        self._closed = True
        for tail in self._tails:
            tail.wake()

    async def _ask(self, question: Callable[[GatewayLink], Awaitable[KeptRecords]]) -> _Answers:
        """What each that is known said within the time, by its name."""
        asked = [self._told(link, question) for link in self._links.values()]
        away = [(answer, KeptRecords()) for answer in self._away()]
        return sorted([*await asyncio.gather(*asked), *away], key=lambda each: each[0].id)

    async def _told(
        self, link: GatewayLink, question: Callable[[GatewayLink], Awaitable[KeptRecords]]
    ) -> tuple[GatewayAnswer, KeptRecords]:
        try:
            async with asyncio.timeout(self._within.total_seconds()):
                told = await question(link)
        except TimeoutError:
            why = f"it did not answer within {self._within.total_seconds():g} s"
        except Unavailable as error:
            why = str(error)
        else:
            return told.answer(link.gateway), told
        return GatewayAnswer(link.gateway, answered=False, detail=why), KeptRecords()

    def _away(self) -> list[GatewayAnswer]:
        """Gateways that cannot be asked, and why."""
        known = self._cluster.view().gateways
        return [
            GatewayAnswer(name, answered=False, detail=_AWAY.get(gateway.state, _NO_STREAM))
            for name, gateway in known.items()
            if name not in self._links
        ]

    def _telling(self, tail: Tail) -> list[GatewayAnswer]:
        """Who tells a follower, and who does not."""
        told = [
            GatewayAnswer(name, answered=follows, detail="" if follows else _NO_TAIL)
            for name, follows in ((n, link.follows(tail)) for n, link in self._links.items())
        ]
        return sorted([*told, *self._away()], key=lambda each: each.id)


def _listed(gateways: Sequence[GatewayAnswer], known: Mapping[str, Gateway]) -> str:
    """How each stands, as the end of a sentence."""
    told = []
    for each in gateways:
        if not each.answered:
            told.append(f"{each.id}: {each.detail}")
            continue
        kept = f"those since {_time(each.kept_since)}" if each.kept_since else "none"
        began = gateway.started_at if (gateway := known.get(each.id)) else None
        started = f" (it was started at {_time(began)})" if began else ""
        told.append(f"{each.id} keeps {kept}{started}")
    return f": {'; '.join(told)}" if told else ": none is there"


def _time(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M:%S} UTC"
