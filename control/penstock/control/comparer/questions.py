"""What a judge and an embedding deployment are asked about pairs that were counted already.

Asked beside the counting, so nobody waits for them: a few of a shadow at a time, the others in
memory, cut, and not too many of these. A pair of which nothing comes, or of which nothing had come
when the process ended, goes without: its shadow's check has one pair less. Answers that are alike
are asked about as all others are: if these alone were sure to count, each question that comes to
nothing would make the candidate look more like the primary.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from penstock.control.comparer.answers import answer_of, object_of
from penstock.control.comparer.ledger import Counted
from penstock.control.errors import Unavailable
from penstock.control.rpc.shadow_service import Ask
from penstock.control.state.shadow.comparing import Order
from penstock.evals.comparison import judging, meaning
from penstock.evals.comparison.pair import Answer, Judged, Pair
from penstock.v1 import shadow_pb2

log = logging.getLogger(__name__)

MOST_WAITING: Final = 32
"""Pairs of a shadow that are asked about, or wait for it."""
AT_ONCE: Final = 4
"""Of these, asked about at a time: as many questions as a gateway takes of one rule."""
PATIENCE: Final = timedelta(seconds=120)
OVERLOAD: Final = "overload"
_CHAT: Final = "/v1/chat/completions"
_EMBEDDINGS: Final = "/v1/embeddings"


@dataclass(frozen=True, slots=True)
class Subject:
    """What is asked about one pair."""

    order: Order
    tenant: str
    confined: bool
    shown: judging.Shown | None  # to the judge
    texts: tuple[str, ...]  # for the embedding deployment

    @classmethod
    def of(cls, counted: Counted) -> Subject:
        """A counted pair's, by whom its shadow may ask."""
        order, message, pair = counted
        return cls(
            order,
            message.tenant,
            message.confined,
            judging.Shown.of(object_of(message.body), pair) if order.judge else None,
            meaning.texts_of_pair(pair) if order.embedder else (),
        )

    def asks(self) -> tuple[str, ...]:
        """Whom, as outcomes name them."""
        return (*(("judge",) if self.shown else ()), *(("embedder",) if self.texts else ()))


@dataclass(frozen=True, slots=True)
class Found:
    """What came of it."""

    uid: str
    pair: Pair  # of the figures alone
    checks: tuple[str, ...]  # that say something of it now
    missed: Mapping[str, int]  # outcomes, "judge_preempted"


class Unanswered(Exception):
    """Why nothing is known, in a word."""


class Questions:
    """Takes pairs, and hands on what was found of each: `tell`. A pair's questions are asked by the
    gateway that brought it: `ask`, which raises `Unavailable` where that has gone."""

    def __init__(self, tell: Callable[[Found], Awaitable[None]]) -> None:
        self._tell = tell
        self._offered: asyncio.Queue[tuple[Subject, Ask]] = asyncio.Queue()
        self._waiting: Counter[str] = Counter()  # and asked about, by shadow
        self._places: dict[str, asyncio.Semaphore] = {}

    def offer(self, subject: Subject, ask: Ask) -> tuple[str, ...]:
        """Asks about a pair when it is its turn; the outcomes, where there are too many."""
        whom, uid = subject.asks(), subject.order.uid
        if not whom:
            return ()
        if self._waiting[uid] >= MOST_WAITING:
            return tuple(f"{each}_{OVERLOAD}" for each in whom)
        self._waiting[uid] += 1
        self._offered.put_nowait((subject, ask))
        return ()

    async def run(self) -> None:
        """Until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            while True:
                tasks.create_task(self._see_to(*await self._offered.get()))

    async def _see_to(self, subject: Subject, ask: Ask) -> None:
        uid = subject.order.uid
        try:
            async with self._places.setdefault(uid, asyncio.Semaphore(AT_ONCE)):
                found = await find(subject, ask)
            await self._tell(found)
        except Exception:
            log.exception("a pair's questions came to nothing", extra={"uid": uid})
        finally:
            self._waiting[uid] -= 1
            if not self._waiting[uid]:
                del self._waiting[uid], self._places[uid]


async def find(subject: Subject, ask: Ask) -> Found:
    """Asks all there is to ask about a pair."""
    missed: list[str] = []
    judged: tuple[Judged, Judged] | None = None
    places: Sequence[Sequence[float] | None] = (None, None, None)
    if subject.shown is not None:
        try:
            judged = await _judged(subject, subject.shown, ask)
        except Unanswered as why:
            missed.append(f"judge_{why}")
    if subject.texts:
        try:
            places = await _places(subject, ask)
        except Unanswered as why:
            missed.append(f"embedder_{why}")
    primary, candidate, again = (Answer(embedding=each) for each in places)
    pair = Pair("", primary, candidate, again, judged=judged)
    checks = (*(("judge",) if judged else ()), *(("semantic",) if places[0] else ()))
    return Found(subject.order.uid, pair, checks, Counter(missed))


async def _judged(subject: Subject, shown: judging.Shown, ask: Ask) -> tuple[Judged, Judged]:
    """With the primary's answer first, and second."""
    said = []
    for candidate_first in (False, True):
        body = judging.question(subject.order.judge, shown, candidate_first=candidate_first)
        reply = await _reply(subject, subject.order.judge, _CHAT, body, ask)
        answer = answer_of(reply)
        if answer.failed:
            raise Unanswered("error")
        word = judging.verdict(answer.text, candidate_first=candidate_first)
        if word is None:
            raise Unanswered("unreadable")
        said.append(word)
    return said[0], said[1]


async def _places(subject: Subject, ask: Ask) -> Sequence[Sequence[float]]:
    """Of the primary's text, the candidate's, and the primary's second one."""
    texts, embedder = subject.texts, subject.order.embedder
    reply = await _reply(subject, embedder, _EMBEDDINGS, meaning.question(embedder, texts), ask)
    if reply.error_code or reply.status != 200:
        raise Unanswered("error")
    found = None if reply.cut else meaning.places(object_of(reply.body), texts)
    if found is None:
        raise Unanswered("unreadable")
    return found


async def _reply(
    subject: Subject, deployment: str, path: str, body: Mapping[str, Any], ask: Ask
) -> shadow_pb2.ShadowAnswer:
    question = shadow_pb2.ShadowQuestion(
        rule=subject.order.uid,
        deployment=deployment,
        path=path,
        body=json.dumps(body, ensure_ascii=False).encode(),
        tenant=subject.tenant,
        confined=subject.confined,
    )
    try:
        async with asyncio.timeout(PATIENCE.total_seconds()):
            reply = await ask(question)
    except TimeoutError:
        raise Unanswered("late") from None
    except Unavailable:
        raise Unanswered("lost") from None
    if reply.outcome:
        raise Unanswered(reply.outcome)
    return reply.answer
