"""One replica's life: started, pinged, restarted when it dies or hangs, stopped when asked.

One asyncio task runs it (`ReplicaSupervisor.run`); the replica keeps its id through all its
processes. Every change of the record goes through `_become`, which writes it to disk before
anybody hears of it, so that a successor of this agent can adopt what runs.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from penstock.control.errors import Code, InvalidInput, LaunchFailed, NotFound, TokenRefused
from penstock.control.node_agent import replica_log
from penstock.control.node_agent.dependencies import Pulse, SupervisorDependencies
from penstock.control.node_agent.kept_adapters import KeepForwarder, remembered
from penstock.control.node_agent.nap import Nap
from penstock.control.node_agent.replica_record import (
    NO_PROCESS,
    Phase,
    ReplicaRecord,
    as_registered,
    identity,
    made_for,
)
from penstock.control.node_agent.replica_starts import NoMemory, ReplicaStarts
from penstock.control.state.fleet.replica import ReplicaStart
from penstock.control.supervision.process import Process
from penstock.control.supervision.restart_policy import (
    CANNOT_LOAD,
    WOKE_WRONG,
    Ending,
    GiveUp,
    after_end,
    describe,
)
from penstock.control.supervision.supervisor import supervise
from penstock.v1 import inference_pb2, nodes_pb2

log = logging.getLogger(__name__)


NEVER_READY = timedelta(0)
NO_DRAIN = timedelta(0)


class ReplicaSupervisor:
    """Owns one replica from its start to its stop."""

    def __init__(self, record: ReplicaRecord, dependencies: SupervisorDependencies) -> None:
        self._record = record
        self._id = record.spec.replica_id
        self._needs = dependencies
        self._log_path = dependencies.files.log_path(self._id)
        self._starts = ReplicaStarts(dependencies, self._log_path)
        self._stopping = asyncio.Event()
        self._drain = timedelta(0)
        self._registered = asyncio.Event()
        self._spoke = asyncio.Event()  # the running process has said something
        self._ready = asyncio.Event()  # the running process is, or was
        self._forwarder = KeepForwarder(
            lambda: self._record, dependencies.probe, dependencies.clock, dependencies.timings
        )
        self._nap = Nap(lambda: self._record, self._become, self._is_ready, self.stop, dependencies)
        self._process: Process | None = None
        self._adopted: Process | None = None
        self._ready_at: float | None = None  # by the monotonic clock, of the running process
        self._unlogged = ""  # why its output is dropped
        self._verdict = ""  # why we killed the process ourselves
        self._renewing = False  # we end the process to start another in its place

    @property
    def record(self) -> ReplicaRecord:
        """The replica as it is now."""
        return self._record

    @property
    def log_path(self) -> Path:
        """Where the replica logs."""
        return self._log_path

    async def run(self, adopted: Process | None = None) -> None:
        """The whole life, beginning with an adopted process or a new one; ends when stopped."""
        self._adopted = adopted
        if adopted is not None or await self._may_start():
            await supervise(self, adopted)
        await self._stopping.wait()
        self._become(Phase.STOPPED, **NO_PROCESS)

    def check_is(self, spec: nodes_pb2.ReplicaSpec) -> None:
        """Takes a repeated order for this replica. Raises `InvalidInput` where it is for another:
        what runs is never told of as something that it is not."""
        ours = self._record.spec
        if identity(spec) != identity(ours):
            raise InvalidInput(
                f"replica {self._id} runs here for {made_for(ours)}, not for {made_for(spec)}: stop"
                " it first, or choose another id"
            )

    def stop(self, drain: timedelta, *, sleep: bool = False) -> None:
        """Asks for the end: running calls get `drain`, then the process is stopped. Or, where it
        can, for its sleep."""
        if sleep and self._nap.ask(drain):
            return
        self._drain = drain
        self._stopping.set()

    def wake(self) -> None:
        """It is to serve, also if it sleeps."""
        self._nap.wake()

    def kill(self) -> None:
        """Ends the process and all it started at once; `run` sees to the rest."""
        if self._process is not None:
            self._process.kill_group()

    def registered(self, call: nodes_pb2.RegisterReplicaRequest) -> None:
        """The replica announced itself. Raises `unknown-replica` if we did not start it."""
        if self._process is None or call.pid != self._record.pid:
            raise NotFound(
                f"replica {call.replica_id} is process {self._record.pid}, not {call.pid}: stop",
                Code.UNKNOWN_REPLICA,
            )
        self._become(self._record.phase, **as_registered(self._record, call))
        self._registered.set()
        self._spoke.set()

    def keep(self, keep: inference_pb2.KeepAdapters) -> None:
        """What this replica is to hold from now on, in all its processes."""
        self._become(self._record.phase, **remembered(self._record, keep))
        self._forwarder.tell()

    # ---- the life that `supervise` lives through

    async def start(self) -> Process:
        """Starts a process of the replica. Raises LaunchFailed."""
        unlogged, now = self._unlogged, self._needs.clock.now()
        self._unlogged = replica_log.begin(self._log_path, self._id, now)
        if self._unlogged and self._unlogged != unlogged:
            log.warning("replica %s: %s", self._id, self._unlogged)
        self._become(Phase.STARTING, **NO_PROCESS, next_start=None, ready_at=None)
        return await self._starts.start(self._record.spec, self._runs, self.pause)

    def _runs(self, process: Process, start: ReplicaStart) -> None:
        """Written down before the process can register, and before anything else is awaited."""
        self._become(
            Phase.STARTING,
            pid=process.pid,
            process_started_at=process.started_at,
            started_at=self._needs.clock.now(),
            own_token=True,
            start=start,
        )
        why = f" ({start.reason})" if start.reason else ""
        log.info("replica %s started %s as process %d%s", self._id, start.kind, process.pid, why)

    async def accompany(self, process: Process) -> int | None:
        """Stays with a process until it has ended, and nothing of it is left."""
        self._process = process
        self._registered.clear()
        self._ready.clear()
        self._ready_at = None
        if self._record.phase is Phase.READY:
            self._is_ready()
        async with asyncio.TaskGroup() as group:
            watchers = [
                group.create_task(self._watch(process)),
                group.create_task(self._stop_when_asked(process)),
                group.create_task(self._renew_if_untrusted(process)),
                group.create_task(self._kill_if_it_wakes_wrong(process)),
                group.create_task(self._forwarder.accompany(self._ready, self._accepted)),
            ]
            exit_code = await process.wait()
            for watcher in watchers:
                watcher.cancel()
        self._process = None
        process.kill_group()
        return exit_code

    async def ended(self, exit_code: int | None, refusal: LaunchFailed | None) -> timedelta | None:
        """Notes how the process ended, and what follows if nobody had asked for it."""
        if self._record.phase is Phase.ASLEEP:  # nobody misses it
            log.warning("replica %s ended in its sleep", self._id)
            self._stopping.set()
        if self._stopping.is_set():
            return None
        if isinstance(refusal, NoMemory):
            exit_code = CANNOT_LOAD  # as the replica would say it, some seconds later
        exit_code = WOKE_WRONG if self._nap.failed else exit_code
        ended: dict[str, Any] = {**NO_PROCESS, "exit_code": exit_code or 0}
        error = str(refusal) if refusal else self._explain(exit_code)
        if self._renewing:  # no failure of its own
            self._renewing = False
            self._become(Phase.BACKOFF, **ended, last_error=error)
            return timedelta(0)
        if self._ready_at is None:
            self._needs.starts.start_ended(self._record, error)
        if self._ready_at is None and self._starts.forgives(error):
            self._become(Phase.BACKOFF, **ended, last_error=error)
            log.warning("replica %s %s: started cold", self._id, error)
            return timedelta(0)
        ending = Ending(exit_code=exit_code, ready_for=self._was_ready_for())
        decision = after_end(self._needs.policy, self._record.failures, ending)
        if isinstance(decision, GiveUp):
            self._become(Phase.FAILED, **ended, last_error=error)
            log.error("replica %s failed: %s", self._id, error)
            return None
        if decision.crash_loop:
            error = f"crash loop, {decision.failures} failures in a row: {error}"
        self._become(
            Phase.BACKOFF,
            **ended,
            last_error=error,
            failures=decision.failures,
            restarts=self._record.restarts + 1,
            next_start=self._needs.clock.now() + decision.after,
        )
        log.warning("replica %s %s", self._id, error)
        return decision.after

    async def pause(self, duration: timedelta) -> bool:
        """Waits for the next start, or for being stopped."""
        with suppress(TimeoutError):
            async with asyncio.timeout(max(0.0, duration.total_seconds())):
                await self._stopping.wait()
        return not self._stopping.is_set()

    # ---- one process

    async def _watch(self, process: Process) -> None:
        """Pings the process, and kills it when it does not become ready or stops answering."""
        limit = self._start_limit().total_seconds()
        try:
            async with asyncio.timeout(limit):
                why = await self._until_ready()
        except TimeoutError:
            why = f"did not become ready within {limit:g} s"
        self._verdict = why or await self._until_hung()
        log.error("replica %s %s: killed", self._id, self._verdict)
        process.kill_group()

    async def _kill_if_it_wakes_wrong(self, process: Process) -> None:
        self._verdict = await self._nap.accompany()
        log.error("replica %s %s: killed", self._id, self._verdict)
        process.kill_group()

    def _start_limit(self) -> timedelta:
        """From the process's start, or its adoption, to ready."""
        limit = timedelta(milliseconds=self._record.spec.start_limit_ms)
        return limit or self._needs.timings.start_limit

    async def _until_ready(self) -> str:
        """Returns at once for an adopted replica that had been ready; why it never will be."""
        if self._record.phase is Phase.STARTING and not self._record.address:
            limit = self._starts.registers_within
            try:
                async with asyncio.timeout(limit):
                    await self._registered.wait()
            except TimeoutError:
                return f"was claimed from the warm pool and did not register within {limit:g} s"
        while self._record.phase is Phase.STARTING:
            self._spoke.clear()
            pulse = await self._pulse()
            if pulse.ok:
                self._become(Phase.READY, ready_at=self._needs.clock.now())
                self._is_ready()
                self._starts.ready()
                self._needs.starts.start_ended(self._record, "")
                log.info("replica %s is ready at %s", self._id, self._record.address)
            elif pulse.draining:
                self._drains_unasked(pulse)  # it loads no longer towards anything
            elif pulse.asleep and await self._nap.woken():  # it was to be woken by the last agent
                await self._needs.clock.sleep(self._needs.timings.loading_ping_every)
            else:  # what it says next may be that it is ready
                with suppress(TimeoutError):
                    async with asyncio.timeout(
                        self._needs.timings.loading_ping_every.total_seconds()
                    ):
                        await self._spoke.wait()
        return ""

    def _is_ready(self) -> None:
        self._ready_at = self._needs.clock.monotonic()
        self._ready.set()

    def _accepted(self, order: inference_pb2.KeepAdapters) -> None:
        """The process knows what it is to drop; the next one never had it."""
        if order.dropped:
            left = set(self._record.dropped_adapters) - set(order.dropped)
            self._become(self._record.phase, dropped_adapters=tuple(sorted(left)))

    async def _until_hung(self) -> str:
        """Returns why it counts as hung. Silence counts from the first ping without an answer."""
        clock, timings = self._needs.clock, self._needs.timings
        silent_since: float | None = None
        while True:
            await clock.sleep(timings.ping_every)
            asked_at = clock.monotonic()
            pulse = await self._pulse()
            if pulse.draining and self._record.phase is Phase.READY:
                self._drains_unasked(pulse)
            if pulse.ok or pulse.draining or pulse.asleep:
                silent_since = None
                continue
            silent_since = asked_at if silent_since is None else silent_since
            silent_for = clock.monotonic() - silent_since
            if silent_for >= timings.hang_after.total_seconds():
                return f"hung for {silent_for:.0f} s: {pulse.detail}"

    def _drains_unasked(self, pulse: Pulse) -> None:
        """It takes no new requests; the head replaces it in order, and its streams go on."""
        log.warning("replica %s takes no new requests: %s", self._id, pulse.detail)
        self._become(Phase.DRAINING, last_error=pulse.detail or self._record.last_error)

    async def _pulse(self) -> Pulse:
        pulse = await self._needs.probe.pulse(
            self._record.where, within=self._needs.timings.ping_timeout
        )
        return pulse or Pulse(ok=False, detail="no answer to Health")

    async def _stop_when_asked(self, process: Process) -> None:
        await self._stopping.wait()
        serves = self._record.phase in (Phase.READY, Phase.DRAINING)
        self._become(Phase.DRAINING, stop_by=self._needs.clock.now() + self._drain)
        await self._end(process, await self._drained(self._drain if serves else NO_DRAIN))

    async def _renew_if_untrusted(self, process: Process) -> None:
        """An adopted process that finds keys, or may send them, where this agent does not let it
        is ended; the one that follows is started as this agent has it."""
        argv = process.argv if process is self._adopted else ()
        if not argv or self._stopping.is_set():
            return
        if self._needs.keeps_secrets(self._record.spec, argv):
            return
        serves = self._record.phase in (Phase.READY, Phase.DRAINING)
        self._renewing = True
        self._verdict = "was started with another --provider-hosts or --secrets-dir: renewed"
        log.warning("replica %s %s", self._id, self._verdict)
        self._become(Phase.DRAINING, last_error=self._verdict)
        patience = await self._drained(self._needs.timings.renewal_drain if serves else NO_DRAIN)
        if not self._stopping.is_set():  # else it ends in the time that its stop gives
            await self._end(process, patience)

    async def _drained(self, drain: timedelta) -> timedelta:
        """Has running calls finish. Returns what the process gets from its signal on."""
        patience = self._needs.timings.stop_grace
        if drain:
            try:
                await self._needs.probe.drain(self._record.where, drain)
            except TokenRefused:
                patience += drain  # the signal asks it to drain
        return patience

    async def _end(self, process: Process, patience: timedelta) -> None:
        process.terminate()
        await self._needs.clock.sleep(patience)
        process.kill_group()

    # ---- what follows an end

    def _explain(self, exit_code: int | None) -> str:
        verdict, self._verdict = self._verdict, ""
        if self._renewing:
            return verdict
        if not verdict and not self._unlogged and (said := replica_log.last_error(self._log_path)):
            return said
        ended = verdict or describe(exit_code)
        said = "" if self._unlogged else replica_log.last_words(self._log_path)
        return f"{ended}; it said last: {said}" if said else ended

    def _was_ready_for(self) -> timedelta:
        if self._ready_at is None:
            return NEVER_READY
        return timedelta(seconds=self._needs.clock.monotonic() - self._ready_at)

    async def _may_start(self) -> bool:
        """Once the pause that a former life began is over; not where it gave up."""
        now = self._needs.clock.now()
        left = (self._record.next_start or now) - now
        return self._record.phase is not Phase.FAILED and await self.pause(left)

    def _become(self, phase: Phase, **changes: Any) -> None:
        self._record = replace(self._record.advance(phase), **changes)
        try:
            if phase is Phase.STOPPED:
                self._needs.files.forget(self._id)
            else:
                self._needs.files.save(self._record)
        except OSError as error:  # a full disk is no reason to stop serving
            log.error("cannot remember replica %s: %s", self._id, error)
        self._needs.on_change()
