"""A replica's process put to sleep in place of its end, and woken in place of a new start.

A wake is never trusted: the replica itself compares what it answers with what it answered before,
and ends where that differs. Who does not wake in the time that a start has is killed; what follows
is what follows any end that nobody asked for.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from datetime import timedelta

from penstock.control.errors import Unavailable
from penstock.control.node_agent.dependencies import SupervisorDependencies
from penstock.control.node_agent.replica_record import Phase, ReplicaRecord

log = logging.getLogger(__name__)


class Nap:
    """The sleep of one replica, as often as it is asked for.

    `record`: the replica as it is now; `become`: it is in another phase; `is_ready`: its process
    is, from now on; `stop`: it is to end, running calls get so much time.
    """

    def __init__(
        self,
        record: Callable[[], ReplicaRecord],
        become: Callable[..., None],
        is_ready: Callable[[], None],
        stop: Callable[[timedelta], None],
        needs: SupervisorDependencies,
    ) -> None:
        self._record = record
        self._become = become
        self._is_ready = is_ready
        self._stop = stop
        self._needs = needs
        self._drain = timedelta(0)
        self._to_sleep = asyncio.Event()
        self._to_wake = asyncio.Event()
        self.failed = False  # the process that ran last did not wake as it had gone to sleep

    def ask(self, drain: timedelta) -> bool:
        """Whether the replica is put to sleep, or sleeps already; running calls get `drain`."""
        phase = self._record().phase
        if phase is Phase.READY:
            self._drain = drain
            self._to_sleep.set()
        return self._to_sleep.is_set() or phase is Phase.ASLEEP

    def wake(self) -> None:
        """It is to serve again, if it sleeps or is on its way to."""
        if self._record().phase is Phase.ASLEEP:
            self._become(Phase.STARTING)
            self._to_wake.set()
        elif self._to_sleep.is_set():
            self._to_wake.set()

    async def accompany(self) -> str:
        """Stays with a process; returns why it is to be killed, where it does not wake."""
        self.failed = False
        self._to_sleep.clear()
        self._to_wake.clear()
        while True:
            if self._record().phase is not Phase.ASLEEP:
                await self._to_sleep.wait()
                await self._fall_asleep()
                self._to_sleep.clear()
            if self._record().phase is Phase.ASLEEP:
                await self._to_wake.wait()
                self._to_wake.clear()
                if self._record().phase is Phase.ASLEEP:  # it was to be woken before it slept
                    self._become(Phase.STARTING)
                if self._record().phase is Phase.STARTING and (why := await self.woken()):
                    return why

    async def woken(self) -> str:
        """Has the process wake and be ready; why it is not."""
        clock, timings = self._needs.clock, self._needs.timings
        record, began = self._record(), clock.monotonic()
        limit = timedelta(milliseconds=record.spec.start_limit_ms) or timings.start_limit
        try:
            wakes = await self._needs.probe.wake(record.where, within=limit)
        except Unavailable as error:
            self.failed = True
            await clock.sleep(timings.stop_grace)  # one that woke wrongly ends, and says why
            return f"did not wake: {error}"
        took = round((clock.monotonic() - began) * 1000)
        if self._record().phase is Phase.STARTING:
            self._become(Phase.READY, ready_at=clock.now(), wakes=wakes, wake_ms=took)
            self._is_ready()
            log.info("replica %s woke within %d ms", record.spec.replica_id, took)
        return ""

    async def _fall_asleep(self) -> None:
        record = self._record()
        name = record.spec.replica_id
        self._become(Phase.DRAINING, stop_by=self._needs.clock.now() + self._drain)
        if why := await self._needs.probe.sleep(record.where, self._drain):
            log.warning("replica %s does not sleep, it is ended: %s", name, why)
            said = f"did not go to sleep, and is ended: {why}"
            self._become(Phase.DRAINING, last_error=said)
            self._stop(self._drain)
        else:
            log.info("replica %s sleeps", name)
            self._become(Phase.ASLEEP, stop_by=None, ready_at=None)
