"""The comparer's work: one thing at a time, in a thread beside that of its ports."""

from __future__ import annotations

import asyncio
import json
import logging
import math
import sqlite3
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from functools import partial
from typing import Final, TypeVar

from penstock.control.comparer.ledger import Ledger
from penstock.control.comparer.questions import Found, Questions, Subject
from penstock.control.rpc.shadow_service import Ask
from penstock.control.state.recording.recorded import RecordingOrder, RecordingStanding
from penstock.control.state.shadow.comparing import Account, Order, Standing
from penstock.evals.comparison.page import as_page
from penstock.evals.comparison.plan import as_markdown as table
from penstock.evals.comparison.plan import as_rows, plan
from penstock.evals.comparison.report import Report, as_dict, as_markdown
from penstock.v1 import shadow_pb2

log = logging.getLogger(__name__)

_T = TypeVar("_T")
ENOUGH: Final = 50
"""Sessions from which on their share of the pairs tells something."""


class Comparer:
    """What the services call; all of it is on disk when a call returns."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._free = asyncio.Lock()
        self._told = asyncio.Event()  # of the shadows that there are
        self._questions = Questions(self._add_later)
        self.trouble = ""

    async def run(self) -> None:
        """Asks others about pairs that were counted, until cancelled."""
        await self._questions.run()

    async def count(self, batch: shadow_pb2.ShadowBatch, ask: Ask) -> None:
        """Counts what a gateway tells, which is to `ask` what else has to be known of it. Before
        the head has said which shadows there are, pairs of theirs would be nobody's: until then it
        waits."""
        await self._told.wait()
        missed: dict[str, Counter[str]] = {}
        for each in await self._take(batch):
            if outcomes := self._questions.offer(each, ask):
                missed.setdefault(each.order.uid, Counter()).update(outcomes)
        for uid, counts in missed.items():
            await self._do(partial(self._ledger.add_outcomes, uid, counts))

    async def _take(self, batch: shadow_pb2.ShadowBatch) -> list[Subject]:
        """Notes whether it can: the head tells people."""
        take = self._ledger.take
        try:
            found = await self._do(lambda: [Subject.of(counted) for counted in take(batch)])
        except sqlite3.Error as error:
            self.trouble = f"cannot write what it counts: {error}: make room on its disk"
            log.error("a batch is not counted", extra={"error": str(error)})
            raise
        self.trouble = ""
        return found

    async def keep(
        self,
        orders: Sequence[Order],
        recordings: Sequence[RecordingOrder] = (),
        *,
        keep_others: bool,
    ) -> Sequence[Standing]:
        """These are the shadows and recordings that there are; how each shadow stands."""

        def work() -> list[Standing]:
            self._ledger.keep(orders, recordings, keep_others=keep_others)
            return [self._standing(each.uid) for each in orders]

        standings = await self._do(work)
        self._told.set()
        return standings

    async def recorded(self) -> Sequence[RecordingStanding]:
        """How each recording stands."""
        held = self._ledger.recordings
        return await self._do(lambda: [held.standing(uid) for uid in sorted(held.uids)])

    async def recording(self, uid: str) -> AsyncIterator[bytes]:
        """A recording as a file, some lines at a time. Raises `unknown-recording`."""
        held = self._ledger.recordings
        yield await self._do(lambda: held.head(uid))
        last = 0
        while (part := await self._do(partial(held.part, uid, last))) is not None:
            last = part.last
            yield b"".join(part.texts)

    async def account(self, uid: str, pairs_a_day: float, *, with_texts: bool = False) -> Account:
        """All that is known of one, and what its margins can show with so many pairs a day (0: not
        known). `with_texts`: of prompts and answers, too. Raises `unknown-shadow`."""
        return await self._do(lambda: self._account(uid, pairs_a_day, with_texts=with_texts))

    async def _add_later(self, found: Found) -> None:
        def work() -> None:
            if found.checks:
                self._ledger.add_later(found.uid, found.pair, found.checks)
            self._ledger.add_outcomes(found.uid, found.missed)

        await self._do(work)

    def _standing(self, uid: str) -> Standing:
        found = self._ledger.report(uid)
        return Standing(uid, found.verdict.name.lower(), found.counted, found.again)

    def _account(self, uid: str, pairs_a_day: float, *, with_texts: bool) -> Account:
        found = self._ledger.report(uid, with_texts=with_texts)
        outcomes = self._ledger.outcomes(uid)
        a_day = pairs_a_day * _counting(found) or math.inf
        promised = plan(self._ledger.tally(uid).rules, a_day)
        told = {**as_dict(found), "outcomes": outcomes, "plan": as_rows(promised)}
        lines = [f"- sampled requests, {name}: {count:,}" for name, count in outcomes.items()]
        known = "" if math.isinf(a_day) else f", at {a_day:,.0f} sessions a day"
        lines += ["", f"What it takes{known}:", "", table(promised)]
        markdown = "\n".join([as_markdown(found), *lines, ""])
        return Account(json.dumps(told), markdown, as_page(found))

    async def _do(self, work: Callable[[], _T]) -> _T:
        async with self._free:
            return await asyncio.to_thread(work)


def _counting(found: Report) -> float:
    """The share of pairs that are the first of their session; until there are some, all."""
    return found.counted / found.pairs if found.counted >= ENOUGH else 1.0
