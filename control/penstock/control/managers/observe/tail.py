"""What one follower of requests has yet to take: so much, and what comes beyond it is counted."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import islice
from typing import Final

from penstock.control.managers.changes import ChangeSignal
from penstock.control.managers.observe.link import Reply
from penstock.control.state.observe.asking import GatewayAnswer, Kept, RequestFilter

MOST_WAITING: Final = 1000  # records
MOST_AT_ONCE: Final = 100


@dataclass(frozen=True, slots=True)
class Followed:
    """What a follower is given."""

    kept: Sequence[Kept] = ()  # as they ended
    left_out: int = 0  # that ended too, and came faster than they were taken
    gateways: Sequence[GatewayAnswer] | None = None  # who tells; None: as was told before


class Tail:
    """One follower's."""

    def __init__(self, wanted: RequestFilter) -> None:
        self.wanted = wanted
        self._waiting: deque[Kept] = deque()
        self._left_out = 0
        self._news = ChangeSignal()
        self._changed = True

    def take(self, gateway: str, reply: Reply) -> None:
        """A gateway tells some."""
        space = MOST_WAITING - len(self._waiting)
        taken = [Kept(record, gateway) for record in islice(reply.records, space)]
        self._waiting += taken
        self._left_out += reply.count - len(taken) + reply.left_out
        self._news.set()

    def changed(self) -> None:
        """Other gateways tell than before."""
        self._changed = True
        self._news.set()

    def wake(self) -> None:
        """Lets `wait` return."""
        self._news.set()

    async def wait(self, at_most: timedelta) -> None:
        """Returns when there is something to tell, or when the time is over."""
        await self._news.wait(at_most)

    def given(self, gateways: Callable[[], Sequence[GatewayAnswer]]) -> Followed:
        """Some of what waits, as it came; what was left out was behind the last that waits. Who
        tells is told where that has changed, or where there is nothing else to say."""
        kept = [self._waiting.popleft() for _ in range(min(MOST_AT_ONCE, len(self._waiting)))]
        left_out = 0 if self._waiting else self._left_out
        self._left_out -= left_out
        if self._waiting:
            self._news.set()
        tells = self._changed or not (kept or left_out)
        self._changed = False
        return Followed(kept, left_out, gateways() if tells else None)
