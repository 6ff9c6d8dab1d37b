"""Holds the cluster view, applies changes to it, and stores what has to outlive this process.

One change at a time, which goes to its end though whoever asked for it is cancelled. What an
operator asks for is stored before anybody sees it; what was observed is true whether or not it can
be stored, so a full disk stops no route update.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import NoReturn

from penstock.control.errors import HoldsStill, NotAdmitted, StoreUnavailable
from penstock.control.managers.cluster import Cluster
from penstock.control.managers.whole import Whole
from penstock.control.state.cluster import ClusterView
from penstock.control.state.command import STRANGERS_ADVICE, observed_stamp, take_over, taken_over
from penstock.control.state.fleet.admission import stranger
from penstock.control.state.stamp import Stamp, contradiction
from penstock.control.store.documents import changes_between, view_of
from penstock.control.store.store import IDENTITY, Author, Change, Document, DocumentStore, Key
from penstock.control.supervision.clock import Clock

log = logging.getLogger(__name__)

HEAD = "head"
SEEN = "head (seen)"  # what it was told; no token has such a name

Step = Callable[[ClusterView], ClusterView]
Planned = tuple[ClusterView, str]  # and why, for the audit trail


class ClusterStore(Cluster):
    """The cluster, and its only writer once it is running."""

    def __init__(self, store: DocumentStore, clock: Clock) -> None:
        super().__init__()
        self._store = store
        self._clock = clock
        self._whole = Whole()
        self._stamp = Stamp()
        self._stored = ClusterView()  # as the store has it; behind what is seen while held
        self._hold_unstored = False  # a restart would forget that this head holds still
        self._listens = False  # to strangers too, until it has taken over
        self._restored = False  # from a backup, and it has not taken over since

    def now(self) -> datetime:
        """When a change that is made now was made."""
        return self._clock.now()

    @property
    def stamp(self) -> Stamp:
        """Whose messages ours are: the store's identity, at its newest transaction."""
        return self._stamp

    @property
    def takes_over(self) -> bool:
        """Whether a take-over is yet to come: somebody asked for it, or restored a backup."""
        return self._listens

    async def restore(self, *, listens: bool = False) -> None:
        """Takes up the view that the last head left behind. `listens`: an operator asked for a
        take-over, see `listen_to_all`."""
        contents = await self._store.load()
        if IDENTITY not in contents.documents:
            identity: Document = {"cluster_id": secrets.token_hex(16), "epoch": 1}
            await self._write([Change(IDENTITY, identity)], Author(HEAD, "make the cluster's id"))
        contents = await self._store.load()
        found = contents.documents[IDENTITY].document
        self._restored = bool(found.get("restored"))
        self._listens = listens or self._restored
        self._stamp = Stamp(str(found["cluster_id"]), int(found["epoch"]), contents.version)
        view = view_of(contents, self._clock.steady())
        for document in view.unreadable:
            log.error("skipped a document of the store", extra={"document": document})
        self._stored = view
        self.replace(replace(view, held=str(found.get("held", ""))))

    async def apply(
        self, step: Step, author: Author, together: Sequence[Change] = ()
    ) -> ClusterView:
        """Applies what an operator decided, and stores other documents `together` with it; raises
        StoreUnavailable or HoldsStill, then nothing is changed. Errors that the step raises pass
        through."""

        async def work() -> ClusterView:
            new = step(self._commanding()).with_named_programs()
            await self._write_view(new, author, together)
            return self.replace(new)

        return await self._whole.do(work)

    def tried(self, step: Step) -> ClusterView:
        """The view as `apply` would have it; nothing is changed. Raises as it does."""
        return step(self._commanding())

    async def apply_slow(
        self, step: Step, author: Author, together: Sequence[Change] = ()
    ) -> ClusterView:
        """As `apply`, of a step that computes for long: others are served meanwhile, and changes
        wait for it."""

        async def work() -> ClusterView:
            old = self._commanding()
            new = (await _beside(step, old)).with_named_programs()
            await self._write_view(new, author, together)
            return self.replace(new)

        return await self._whole.do(work)

    async def tried_slow(self, step: Step) -> ClusterView:
        """As `tried`, likewise."""
        return await _beside(step, self._commanding())

    async def apply_plan(self, plan: Callable[[ClusterView], Planned]) -> ClusterView:
        """Applies what a manager decides on the view as it is, in one transaction; raises
        StoreUnavailable, then nothing is changed. While this head holds still nobody is asked."""

        async def work() -> ClusterView:
            old = self.view()
            if old.held:
                return old
            new, what = plan(old)
            await self._write_view(new, Author(HEAD, what))
            return self.replace(new)

        return await self._whole.do(work)

    def listen_to_all(self) -> None:
        """Until the take-over that an operator asked for, strangers are let in too, while this head
        holds still for them: they know what its store does not."""
        self._listens = True

    async def observe_stamp(self, who: str, stamp: Stamp, at: str = "") -> None:
        """Somebody told the newest stamp that they accepted; it may stop this head, for good: the
        store remembers it, or its own revisions would grow until nobody could tell. Raises
        NotAdmitted for a stranger, who changes nothing. `at`: the address, for whoever looks."""
        self.liveness.stamps[who] = stamp
        why = stranger(self.view(), self._stamp, who, stamp)
        if why and not self._listens:
            self.refuse(f"{who} at {at}" if at else who, f"it {why}: {STRANGERS_ADVICE}")
        contradicted = bool(contradiction(self._stamp, stamp))
        if contradicted or self._hold_unstored:
            await self._whole.do(lambda: self._hold(who, stamp))

    def refuse(self, who: str, why: str) -> NoReturn:
        """Shows that somebody is not let in; raises NotAdmitted."""
        if who not in self.liveness.refused:
            log.warning("not let in: %s: %s", who, why)
        self.liveness.refuse(who, why, self._clock.steady())
        raise NotAdmitted(f"{who} is not let in: {why}")

    async def take_over(self) -> tuple[str, ...]:
        """In command from now on, under a higher epoch than anybody knows; returns what the store
        does not know. Raises StoreUnavailable."""
        return await self._whole.do(self._take_over)

    async def _take_over(self) -> tuple[str, ...]:
        old = self.view()
        observed = list(self.liveness.stamps.values())
        taken = take_over(old, self._stamp, observed)
        new = taken_over(old)
        changes = changes_between(self._stored, new)
        changes.append(_identity(taken.stamp, "", restored=False))
        await self._write(changes, Author(HEAD, f"take over: {taken.stamp}"))
        self._stamp = replace(taken.stamp, revision=self._stamp.revision)
        self._stored, self._hold_unstored = new, False
        self._listens = self._restored = False
        self.replace(new)
        return taken.differences

    async def _hold(self, who: str, stamp: Stamp) -> None:
        view = observed_stamp(self.view(), self._stamp, who, stamp)
        if view is not self.view():
            log.error("this head holds still", extra={"reason": view.held})
            self.replace(view)
            self._hold_unstored = True
        await self._store_hold()

    async def _store_hold(self) -> None:
        """Tried again with whatever is heard next, until it is stored."""
        if not self._hold_unstored:
            return
        held = self.view().held
        change = _identity(self._stamp, held, restored=self._restored)
        try:
            await self._write([change], Author(HEAD, f"hold still: {held}"))
            self._hold_unstored = False
        except StoreUnavailable as error:
            log.error("not stored that this head holds still", extra={"error": str(error)})

    def _commanding(self) -> ClusterView:
        """The view of a head that may change things; raises HoldsStill."""
        view = self.view()
        if view.held:
            raise HoldsStill(f"this head holds still: {view.held}")
        return view

    async def observe(self, step: Step, what: str, who: str = SEEN) -> ClusterView:
        """Applies what was seen, stored if that is possible."""

        async def work() -> ClusterView:
            old = self.view()
            new = step(old)
            try:
                if not old.held:  # a store that may be the wrong one is left as it is
                    await self._write_view(new, Author(who, what))
            except StoreUnavailable as error:
                log.error("observation not stored", extra={"what": what, "error": str(error)})
            return self.replace(new)

        return await self._whole.do(work)

    async def documents(self, kind: str) -> Mapping[str, Document]:
        """The stored documents of a kind that is not part of the view, by name."""
        found = (await self._store.load()).documents
        return {key.name: stored.document for key, stored in found.items() if key.kind == kind}

    async def write(self, changes: list[Change], author: Author) -> None:
        """Stores documents that are not part of the view; raises StoreUnavailable or HoldsStill,
        then nothing is changed."""

        async def work() -> None:
            self._commanding()
            await self._write(changes, author)

        await self._whole.do(work)

    async def counter(self, name: str) -> int:
        """The stored value of a counter; 0 where it was never raised."""
        document = (await self.documents("counter")).get(name)
        return int(document["value"]) if document else 0

    async def raise_counter(self, name: str, value: int) -> None:
        """Stores a counter's value; raises as `write` does."""
        document: Document = {"value": value}
        await self.write([Change(Key("counter", name), document)], Author(HEAD, f"raise {name}"))

    async def _write_view(
        self, new: ClusterView, author: Author, together: Sequence[Change] = ()
    ) -> None:
        await self._write([*changes_between(self._stored, new), *together], author)
        self._stored = new

    async def _write(self, changes: list[Change], author: Author) -> None:
        if changes:
            version = await self._store.apply(changes, author, self._clock.now())
            self._stamp = replace(self._stamp, revision=version)


async def _beside(step: Step, view: ClusterView) -> ClusterView:
    """What a step makes of a view in another thread; the same view where it changes nothing."""
    apart = view.apart()
    new = await asyncio.to_thread(step, apart)
    return view if new is apart else new


def _identity(stamp: Stamp, held: str, *, restored: bool) -> Change:
    document = {"cluster_id": stamp.cluster_id, "epoch": stamp.epoch, "held": held}
    return Change(IDENTITY, document | ({"restored": True} if restored else {}))
