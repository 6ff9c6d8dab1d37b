"""One gateway's stream, as questions go to it and answers come back.

What it says is foreign: an answer is taken as far as it was asked for, one that comes too late is
passed over, and what waits here is bounded, however slowly the gateway takes its questions.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass, field
from itertools import islice
from typing import Final, NamedTuple, Protocol

from penstock.control.errors import InvalidInput, Unavailable
from penstock.control.managers.changes import ChangeSignal
from penstock.control.state.observe.asking import KeptRecords, RequestFilter
from penstock.control.state.observe.record import RequestRecord

MOST_UNSENT: Final = 64  # questions that wait to be taken by one gateway


class Question(NamedTuple):
    """What a gateway is asked: one of these."""

    number: int  # of the stream's, from 1
    list: RequestFilter | None = None
    tail: RequestFilter | None = None
    id: str = ""
    forget: int = 0


@dataclass(frozen=True, slots=True)
class Reply:
    """A part of an answer."""

    question: int
    records: Iterable[RequestRecord]  # read as they are taken: what is not costs nothing
    count: int  # of the records
    last: bool = False
    kept_since_us: int = 0
    left_out: int = 0  # of a tail, since the reply before


class TakesTail(Protocol):
    """Who follows what gateways end."""

    wanted: RequestFilter

    def take(self, gateway: str, reply: Reply) -> None:
        """A gateway tells some."""

    def changed(self) -> None:
        """Other gateways tell than before."""


@dataclass(slots=True)
class _Answer:
    """What has come of one so far."""

    most: int
    whole: asyncio.Future[None]
    records: list[RequestRecord] = field(default_factory=list)
    kept_since_us: int = 0

    def take(self, reply: Reply) -> None:
        self.records += islice(reply.records, self.most - len(self.records))
        self.kept_since_us = reply.kept_since_us or self.kept_since_us
        if (reply.last or len(self.records) >= self.most) and not self.whole.done():
            self.whole.set_result(None)


class GatewayLink:
    """The stream of one gateway's process."""

    def __init__(self, gateway: str, instance: str) -> None:
        self.gateway = gateway
        self.instance = instance
        self._asked = 0
        self._unsent: deque[Question] = deque()
        self._news = ChangeSignal()
        self._answers: dict[int, _Answer] = {}
        self._tails: dict[int, TakesTail] = {}
        self._ended = False

    async def list(self, wanted: RequestFilter) -> KeptRecords:
        """Its newest that are so. Raises `Unavailable`."""
        return await self._ask(Question(0, list=wanted), wanted.limit)

    async def find(self, request_id: str, most: int) -> KeptRecords:
        """Those that have this id. Raises `Unavailable`."""
        return await self._ask(Question(0, id=request_id), most)

    def follow(self, tail: TakesTail) -> None:
        """Has it tell what ends from now on."""
        if self._can_take():
            self._tails[self._send(Question(0, tail=tail.wanted))] = tail

    def follows(self, tail: TakesTail) -> bool:
        """Whether it tells."""
        return not self._ended and tail in self._tails.values()

    def forget(self, tail: TakesTail) -> None:
        """It need not tell any more."""
        for number in [number for number, each in self._tails.items() if each is tail]:
            del self._tails[number]
            if not self._take_back(number):
                self._send(Question(0, forget=number))

    def take(self, reply: Reply) -> None:
        """The gateway answers. Raises `InvalidInput` for a question that it was not asked."""
        number = reply.question
        if not 0 < number <= self._asked:
            raise InvalidInput(f"it answers question {number}, and was asked {self._asked}")
        if tail := self._tails.get(number):
            tail.take(self.gateway, reply)
            if reply.last:
                del self._tails[number]
                tail.changed()
        elif answer := self._answers.get(number):
            answer.take(reply)

    async def questions(self) -> AsyncIterator[Question]:
        """What is to be sent to it, until the stream ends."""
        while not self._ended:
            await self._news.wait()
            while self._unsent and not self._ended:
                yield self._unsent.popleft()

    def end(self) -> None:
        """Nothing comes back any more."""
        self._ended = True
        self._news.set()
        for answer in self._answers.values():
            if not answer.whole.done():
                answer.whole.set_exception(Unavailable("its stream ended before it had answered"))
        for tail in self._tails.values():
            tail.changed()

    async def _ask(self, question: Question, most: int) -> KeptRecords:
        if self._ended:
            raise Unavailable("its stream has ended")
        if not self._can_take():
            raise Unavailable(f"it takes no questions: {len(self._unsent)} wait for it")
        answer = _Answer(most, asyncio.get_running_loop().create_future())
        number = self._send(question)
        self._answers[number] = answer
        try:
            await answer.whole
        finally:
            del self._answers[number]
            self._take_back(number)
        records = tuple(answer.records)
        return KeptRecords(records, answer.kept_since_us, more=len(records) >= most)

    def _can_take(self) -> bool:
        return not self._ended and len(self._unsent) < MOST_UNSENT

    def _send(self, question: Question) -> int:
        self._asked += 1
        self._unsent.append(question._replace(number=self._asked))
        self._news.set()
        return self._asked

    def _take_back(self, number: int) -> bool:
        """Whether it had not been sent yet."""
        for question in self._unsent:
            if question.number == number:
                self._unsent.remove(question)
                return True
        return False
