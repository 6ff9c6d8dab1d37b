"""The comparer's process: started with the first shadow or recording, watched, told, started again.

It ends with the head, and what it counted is on disk. Nobody waits for it: without it gateways drop
pairs, and count them.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Final, Protocol

from penstock.control import log_files
from penstock.control.errors import LaunchFailed, Unavailable
from penstock.control.managers.changes import watching
from penstock.control.managers.cluster_store import ClusterStore
from penstock.control.state.cluster import ClusterView
from penstock.control.state.recording.orders import order_of
from penstock.control.state.recording.recorded import RecordingOrder, RecordingStanding
from penstock.control.state.shadow.comparing import Account, Order, Standing, Standings
from penstock.control.state.shadow.shadows import Compared, has_enough_self
from penstock.control.store.documents import RECORDING, SHADOW
from penstock.control.supervision.clock import Clock
from penstock.control.supervision.process import Launcher, Process
from penstock.control.supervision.restart_policy import OWN_PROCESSES, Ending, StartAgain, after_end
from penstock.control.supervision.supervisor import supervise

log = logging.getLogger(__name__)

ASK_EVERY: Final = timedelta(seconds=1)
LOOK_EVERY: Final = timedelta(milliseconds=50)  # for what a process that starts announces
START_LIMIT: Final = timedelta(seconds=60)
PATIENCE: Final = timedelta(seconds=5)  # of who asks for an account while it starts
_KINDS: Final = (f"{SHADOW} ", f"{RECORDING} ")
SAYS: Final = "comparer: error: "
"""Before its last words, where it cannot start."""


class ComparerClient(Protocol):
    """The comparer, as the head asks it."""

    async def keep(
        self,
        orders: Sequence[Order],
        recordings: Sequence[RecordingOrder],
        *,
        keep_others: bool,
    ) -> Standings:
        """These are the shadows and recordings that there are; how each stands. Raises
        `Unavailable`."""

    async def account(self, uid: str, pairs_a_day: float, *, with_texts: bool) -> Account:
        """All that is known of one. Raises `unknown-shadow` and `Unavailable`."""

    def recording(self, uid: str) -> AsyncIterator[bytes]:
        """A recording as a file. Raises `unknown-recording` and `Unavailable`."""

    async def close(self) -> None:
        """Hangs up."""


@dataclass(frozen=True, slots=True)
class ComparerCommand:
    """How it is run, and where it leaves what."""

    argv: tuple[str, ...]
    host: str  # where gateways find its port; empty: where they find the head's
    log_path: Path
    file: Path  # with what it counted
    announced: Callable[[int], Mapping[str, str]]  # what the process of this pid says of itself
    dial: Callable[[str], ComparerClient]


class ComparerManager:
    """Runs it, and puts into the view what it says."""

    def __init__(
        self,
        command: ComparerCommand,
        launcher: Launcher,
        cluster: ClusterStore,
        clock: Clock,
    ) -> None:
        self._command = command
        self._launcher = launcher
        self._cluster = cluster
        self._clock = clock
        self._client: ComparerClient | None = None
        self._process: Process | None = None
        self._standings: Mapping[str, Standing] = {}
        self._recorded: Mapping[str, RecordingStanding] = {}
        self._failures = 0  # in a row
        self._silence = ""  # why the last one was killed; empty: it was not
        self._began = 0.0

    async def run(self) -> None:
        """Until cancelled: from when there is a shadow or a recording, or what one has left
        behind."""
        with watching(self._cluster, _shadows) as changed:
            while not (_is_needed(self._view) or self._command.file.exists()):
                await changed.wait()
        try:
            await supervise(self)
        finally:
            if self._process is not None:
                self._process.terminate()

    def standing(self, uid: str) -> Standing | None:
        """How a shadow stood a second ago; None: nobody has said yet."""
        return self._standings.get(uid)

    def recorded(self, uid: str) -> RecordingStanding | None:
        """How a recording stood a second ago; None: nobody has said yet."""
        return self._recorded.get(uid)

    async def account(self, uid: str, pairs_a_day: float, *, with_texts: bool = False) -> Account:
        """All that is known of a shadow. Raises `unknown-shadow` and `Unavailable`."""
        return await (await self._there(uid)).account(uid, pairs_a_day, with_texts=with_texts)

    async def recording(self, uid: str) -> AsyncIterator[bytes]:
        """A recording as a file. Raises `unknown-recording` and `Unavailable`."""
        async for lines in (await self._there(uid)).recording(uid):
            yield lines

    async def _there(self, uid: str) -> ComparerClient:
        """The comparer, once it has started that begins with the first one. Raises
        `Unavailable`."""
        with suppress(TimeoutError), watching(self._cluster, _compared) as changed:
            async with asyncio.timeout(PATIENCE.total_seconds()):
                while not (self._knows(uid) or self._view.shadows.compared.trouble):
                    await changed.wait()
        if self._client is None:
            what = self._view.shadows.compared.trouble or "starts"
            raise Unavailable(f"the comparer {what}: ask again in some seconds")
        return self._client

    def _knows(self, uid: str) -> bool:
        return self._client is not None and uid in self._view.shadows.compared.known

    # ---- the life that `supervise` lives through

    async def start(self) -> Process:
        """Starts the process."""
        log_files.begin(self._command.log_path)
        self._began = self._clock.monotonic()
        self._process = await self._launcher.start(
            self._command.argv, log_path=self._command.log_path
        )
        return self._process

    async def accompany(self, process: Process) -> int | None:
        """Talks with it until its end."""
        async with asyncio.TaskGroup() as tasks:
            talking = tasks.create_task(self._talk(process))
            exit_code = await process.wait()
            talking.cancel()
        return exit_code

    async def ended(self, exit_code: int | None, refusal: LaunchFailed | None) -> timedelta | None:
        """Has gateways drop pairs until the next one is there."""
        self._process = None
        why = self._why(exit_code, refusal)
        trouble = f"has ended, and is started again: {why}"
        await self._note(lambda compared: replace(compared, address="", trouble=trouble))
        log.error("the comparer ended", extra={"exit_code": exit_code, "why": why})
        ran = timedelta(seconds=self._clock.monotonic() - self._began)
        decision = after_end(OWN_PROCESSES, self._failures, Ending(exit_code, ran))
        if not isinstance(
            decision, StartAgain
        ):  # the exit code of a replica; of ours it says nothing
            return OWN_PROCESSES.longest_delay
        self._failures = decision.failures
        return decision.after

    def _why(self, exit_code: int | None, refusal: LaunchFailed | None) -> str:
        silence, self._silence = self._silence, ""
        said = "".join(log_files.tail(self._command.log_path, 1))
        own = said.removeprefix(SAYS) if said.startswith(SAYS) else ""
        return str(refusal or silence or own or f"exit code {exit_code}")

    async def pause(self, duration: timedelta) -> bool:
        """Waits before the next start."""
        await self._clock.sleep(duration)
        return True

    # ---- what is said

    async def _talk(self, process: Process) -> None:
        """Tells it the shadows and hears how they stand, until it is silent for too long."""
        client: ComparerClient | None = None
        try:
            announced = await self._announced(process)
            client = self._command.dial(announced["head"])
            with watching(self._cluster, _shadows) as changed:
                while True:
                    await changed.wait(ASK_EVERY)
                    await self._ask(client, f"{self._command.host}:{announced['gateways']}")
        except (Unavailable, TimeoutError) as error:
            self._silence = str(error) or f"it said nothing for {START_LIMIT.seconds} s"
            log.error("the comparer is silent: killed", extra={"why": self._silence})
            process.kill()
        finally:
            self._client = None
            if client is not None:
                await client.close()

    async def _announced(self, process: Process) -> Mapping[str, str]:
        async with asyncio.timeout(START_LIMIT.total_seconds()):
            while not (found := self._command.announced(process.pid)):
                await self._clock.sleep(LOOK_EVERY)
        return found

    async def _ask(self, client: ComparerClient, address: str) -> None:
        view = self._view
        if view.held:
            return  # its store may be the wrong one: what it does not know is not to be deleted
        orders = [Order.of(shadow) for shadow in view.shadows.named.values()]
        recordings = [order_of(each) for each in view.recordings.named.values()]
        unread = any(each.startswith(_KINDS) for each in view.unreadable)
        found = await client.keep(orders, recordings, keep_others=unread)
        self._client = client  # before, it would not know what it is asked about
        self._standings = {each.uid: each for each in found.shadows}
        self._recorded = {each.uid: each for each in found.recordings}
        known = frozenset((*self._standings, *self._recorded))
        enough = frozenset(s.uid for s in found.shadows if has_enough_self(s.self_pairs))
        verdicts = {each.uid: each.verdict for each in found.shadows}
        await self._note(
            lambda compared: replace(
                compared,
                address=address,
                known=known,
                enough_self=enough,
                verdicts=verdicts,
                trouble=found.trouble,
            )
        )

    async def _note(self, change: Callable[[Compared], Compared]) -> None:
        def step(view: ClusterView) -> ClusterView:
            compared = change(view.shadows.compared)
            if compared == view.shadows.compared:
                return view
            return replace(view, shadows=replace(view.shadows, compared=compared))

        await self._cluster.observe(step, "what the comparer says")

    @property
    def _view(self) -> ClusterView:
        return self._cluster.view()


def _compared(view: ClusterView) -> tuple[object, ...]:
    return (view.shadows.compared,)


def _shadows(view: ClusterView) -> tuple[object, ...]:
    return (view.shadows.named, view.recordings.named, view.held)


def _is_needed(view: ClusterView) -> bool:
    return bool(view.shadows.named or view.recordings.named)
