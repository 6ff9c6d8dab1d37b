"""All replicas of a node: started, stopped and registered by id, adopted after a restart.

It holds the supervisors; the TaskGroup that its maker passes in owns their tasks.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from penstock.control.errors import Code, NotFound, Unavailable
from penstock.control.node_agent.dependencies import SupervisorDependencies
from penstock.control.node_agent.kept_adapters import check_keep
from penstock.control.node_agent.replica_record import (
    NO_PROCESS,
    Phase,
    ReplicaRecord,
    to_status,
)
from penstock.control.node_agent.state_files import checked
from penstock.control.node_agent.supervisor import ReplicaSupervisor
from penstock.control.state.fleet.replica import ReplicaAddress
from penstock.control.supervision.process import Launcher, Process
from penstock.v1 import inference_pb2, nodes_pb2

log = logging.getLogger(__name__)

# How long an adopted replica may take to prove that it is what the file says.
ADOPTION_PING = timedelta(seconds=2)
# What running calls of an adopted replica get at the least and at the most that was being stopped:
# the clock of the wall, by which they got their time, may have been set since.
LEAST_DRAIN, LONGEST_DRAIN = timedelta(seconds=3), timedelta(minutes=10)


class ReplicaTable:
    """The replicas of this node. All methods run on the loop of `tasks`."""

    def __init__(self, dependencies: SupervisorDependencies, tasks: asyncio.TaskGroup) -> None:
        self._needs = dependencies
        self._tasks = tasks
        self._supervisors: dict[str, ReplicaSupervisor] = {}
        self._running: set[asyncio.Task[None]] = set()  # one for each of them
        self._closing = False
        self._empty = asyncio.Event()
        self._empty.set()

    def statuses(self) -> list[nodes_pb2.ReplicaStatus]:
        """Every replica, whole."""
        return [to_status(each.record, each.log_path) for each in self._supervisors.values()]

    def starting(self) -> list[str]:
        """Those that are to become ready."""
        records = ((r, each.record.phase) for r, each in self._supervisors.items())
        return [replica for replica, phase in records if phase is Phase.STARTING]

    def processes(self) -> dict[str, int]:
        """The pid of each replica that has a process."""
        return {r: it.record.pid for r, it in self._supervisors.items() if it.record.pid}

    def serving_rest(self) -> list[ReplicaAddress]:
        """Those that serve MicroServing by REST."""
        records = (each.record for each in self._supervisors.values())
        return [record.where for record in records if record.microserving_rest]

    def has(self, replica_id: str) -> bool:
        """Whether a replica of this id is here, whatever it does."""
        return replica_id in self._supervisors

    def start(self, spec: nodes_pb2.ReplicaSpec) -> nodes_pb2.ReplicaStatus:
        """Starts a replica; one that is there already is only told of, or woken.

        Raises `InvalidInput`, also where a replica of that id is made from something else, and
        `Unavailable` once `stop_all` or `hand_over` was called.
        """
        replica_id = checked(spec.replica_id)
        if replica_id not in self._supervisors:
            if self._closing:
                raise Unavailable("this node agent is stopping: start it elsewhere, or later")
            self._supervise(ReplicaRecord(spec=spec))
        supervisor = self._supervisors[replica_id]
        supervisor.check_is(spec)
        supervisor.wake()
        return to_status(supervisor.record, supervisor.log_path)

    def stop(self, replica_id: str, drain: timedelta, *, sleep: bool = False) -> None:
        """Begins to stop a replica, which leaves the table once it has ended; or puts it to sleep,
        where it can be."""
        if supervisor := self._supervisors.get(replica_id):
            supervisor.stop(drain, sleep=sleep)

    def registered(self, call: nodes_pb2.RegisterReplicaRequest) -> None:
        """A replica announces itself. Raises `unknown-replica`, and the replica then exits."""
        supervisor = self._supervisors.get(call.replica_id)
        if supervisor is None:
            raise NotFound(
                f"no replica {call.replica_id!r} is to run on this node: stop", Code.UNKNOWN_REPLICA
            )
        supervisor.registered(call)

    def keep_adapters(self, replica_id: str, keep: inference_pb2.KeepAdapters) -> None:
        """What a replica is to hold from now on, in place of what it was told before. Raises
        `unknown-replica`, and `InvalidInput` for a list that none could hold."""
        check_keep(keep)
        supervisor = self._supervisors.get(replica_id)
        if supervisor is None:
            raise NotFound(f"no replica {replica_id!r} runs on this node", Code.UNKNOWN_REPLICA)
        supervisor.keep(keep)

    def adapter_digests(self) -> frozenset[str]:
        """Of every adapter that a replica here holds or is to hold."""
        records = (each.record for each in self._supervisors.values())
        return frozenset(digest for record in records for digest in record.adapter_digests)

    def start_waits(self, by: datetime) -> bool:
        """Whether a replica here starts, or is to be started by then."""
        return any(each.record.start_waits(by) for each in self._supervisors.values())

    def engines(self) -> frozenset[str]:
        """Of the replicas here."""
        return frozenset(each.record.spec.engine for each in self._supervisors.values())

    async def stop_all(self, drain: timedelta, deadline: timedelta) -> None:
        """Stops every replica; what is left at the deadline is killed. Returns when none is."""
        self._closing = True
        for supervisor in self._supervisors.values():
            supervisor.stop(drain)
        try:
            async with asyncio.timeout(deadline.total_seconds()):
                await self._empty.wait()
        except TimeoutError:
            for supervisor in self._supervisors.values():
                supervisor.kill()
            await self._empty.wait()

    async def hand_over(self) -> None:
        """Lets go of every replica as it is, for the agent that comes next on these files."""
        self._closing = True
        for task in self._running:
            task.cancel()
        if self._running:
            await asyncio.wait(self._running)

    async def adopt(self, launcher: Launcher, mark: Sequence[str]) -> None:
        """Takes over what an earlier agent left: running replicas stay, dead ones are replaced.

        A process whose command line has the words of `mark` in a row is a replica of ours; where
        nothing tells how to run it, it is ended. No mark, no search.
        """
        async with asyncio.TaskGroup() as group:
            for record in list(self._needs.files.load()):
                group.create_task(self._adopt(record, launcher))
        known = {supervisor.record.pid for supervisor in self._supervisors.values()}
        for process in launcher.find(mark) if mark else ():
            if process.pid not in known:
                log.warning("process %d is a replica that nobody knows: killed", process.pid)
                process.kill_group()

    async def _adopt(self, record: ReplicaRecord, launcher: Launcher) -> None:
        replica_id = record.spec.replica_id
        process = launcher.adopt(record.pid, record.process_started_at) if record.pid else None
        if process is None and (record.stop_by is not None or record.phase is Phase.ASLEEP):
            self._needs.files.forget(replica_id)
            return
        if process is None:
            if record.phase in (Phase.STARTING, Phase.READY, Phase.DRAINING):
                log.warning("replica %s died while no agent ran: starts again", replica_id)
                restarts = record.restarts + 1
                record = replace(record, phase=Phase.STARTING, restarts=restarts, **NO_PROCESS)
            elif record.phase is Phase.FAILED:
                record = replace(record, phase=Phase.STARTING)  # a new agent is a new chance
            self._supervise(record)
            return
        log.info("replica %s adopted: process %d at %s", replica_id, record.pid, record.address)
        self._supervise(await self._as_it_is(record), process)
        if record.stop_by is not None:  # its stop was cut short by the end of the last agent
            left = record.stop_by - self._needs.clock.now()
            self.stop(replica_id, min(max(left, LEAST_DRAIN), LONGEST_DRAIN))

    async def _as_it_is(self, record: ReplicaRecord) -> ReplicaRecord:
        """The record in the phase that the replica itself tells, so that the head hears no less."""
        if not record.address or record.phase is not Phase.STARTING:
            return record
        pulse = await self._needs.probe.pulse(record.where, within=ADOPTION_PING)
        return replace(record, phase=Phase.READY) if pulse and pulse.ok else record

    def _supervise(self, record: ReplicaRecord, process: Process | None = None) -> None:
        supervisor = ReplicaSupervisor(record, self._needs)
        self._supervisors[record.spec.replica_id] = supervisor
        self._empty.clear()
        task = self._tasks.create_task(self._run(supervisor, process))
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def _run(self, supervisor: ReplicaSupervisor, process: Process | None) -> None:
        await supervisor.run(process)
        del self._supervisors[supervisor.record.spec.replica_id]
        if not self._supervisors:
            self._empty.set()
        self._needs.on_change()
