"""Where requests wait that may not be in the engine yet (`seats.py`). One loop; no vLLM.

A request waits before vLLM makes sequences of it: held so it costs the loop nothing, is not aboard
when the engine dies, and leaves as any generator does that is closed.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from contextvars import ContextVar
from typing import Final

from penstock.replica.vllm.fairness.seats import Seats, Ticket

_HELD: Final[ContextVar[Ticket | None]] = ContextVar("penstock_ticket", default=None)
"""The request whose sequences this code gives to the engine."""


class Gate:
    """Lets requests into the engine as its seats allow. `clock`: seconds that only grow."""

    def __init__(self, seats: Seats, clock: Callable[[], float]) -> None:
        self._seats = seats
        self._clock = clock
        self._turns: dict[Ticket, asyncio.Future[None]] = {}
        self._sequences: dict[str, Ticket] = {}
        self._names: dict[Ticket, set[str]] = {}
        self._reading = set[str]()  # sequences of whose prompts the engine has made nothing yet
        self._open = False

    @asynccontextmanager
    async def passed(self, ticket: Ticket) -> AsyncIterator[float]:
        """Waits for the request's turn; it has its seats for as long as the block lasts, or its
        sequences do. Gives the seconds that it waited."""
        began = self._clock()
        turn = self._turns[ticket] = asyncio.get_running_loop().create_future()
        self._names[ticket] = set()
        self._seats.ask(ticket)
        try:
            self._let_in()
            await turn
            _HELD.set(ticket)
            yield self._clock() - began
        finally:
            self._turns.pop(ticket, None)
            for name in self._names.pop(ticket):
                del self._sequences[name]
                self._reading.discard(name)
            self._seats.forget(ticket, self._clock())
            self._let_in()

    def entered(self, sequence: str) -> None:
        """The engine gets a sequence of the request that has passed in this context."""
        ticket = _HELD.get()
        if ticket in self._names:
            self._sequences[sequence] = ticket
            self._names[ticket].add(sequence)
            if ticket.unread:
                self._reading.add(sequence)

    def began(self, sequences: Iterable[str]) -> None:
        """The engine has made tokens of these: their prompts are read."""
        if not self._reading:
            return
        read = self._reading.intersection(sequences)
        self._reading -= read
        for name in read:
            self._seats.was_read(self._sequences[name])
        if read:
            self._let_in()

    def ended(self, sequences: Iterable[str]) -> None:
        """The engine has them no more. Their answers may be read long after that."""
        for name in sequences:
            if (ticket := self._sequences.pop(name, None)) is not None:
                self._names[ticket].discard(name)
                self._reading.discard(name)
                self._seats.give_back(ticket, 1)
        self._let_in()

    def stepped(self, seconds: float) -> None:
        """The engine has made a step, which took so long."""
        self._seats.stepped(seconds, self._clock())
        self._let_in()

    def held(self) -> tuple[int, int]:
        """How many sequences wait here, and the tokens of their prompts."""
        return self._seats.waiting, self._seats.waiting_tokens

    def give_up(self) -> None:
        """The engine is dead: whoever waits here, or comes, is to hear of it there."""
        self._open = True
        self._let_in()

    def _let_in(self) -> None:
        going = list(self._turns) if self._open else self._seats.ready(self._clock())
        for ticket in going:
            turn = self._turns.pop(ticket)
            if not turn.done():
                turn.set_result(None)
