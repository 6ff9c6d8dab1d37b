"""What a replica is to hold: remembered for its next process, told to the one that runs.

The head says it once; from then on it is this agent that sees to it, whatever becomes of the
replica's processes and of the agent.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import Any

from penstock.adapters.version import is_digest
from penstock.control.errors import InvalidInput, Unavailable
from penstock.control.node_agent.dependencies import ReplicaProbe, SupervisionTimings
from penstock.control.node_agent.replica_record import ReplicaRecord
from penstock.control.supervision.clock import Clock
from penstock.v1 import inference_pb2, nodes_pb2

log = logging.getLogger(__name__)


def check_keep(keep: inference_pb2.KeepAdapters) -> None:
    """Raises `InvalidInput` for a list that no replica could be started with."""
    for each in keep.adapters:
        if not each.name or not (each.source or is_digest(each.digest)):
            raise InvalidInput(
                f"adapter {each.name!r} has the digest {each.digest!r} and no source: name it, with"
                " 64 hexadecimal digits or where it lies"
            )


def remembered(record: ReplicaRecord, keep: inference_pb2.KeepAdapters) -> Mapping[str, Any]:
    """What changes in the record of a replica that is to hold these from now on."""
    spec = nodes_pb2.ReplicaSpec()
    spec.CopyFrom(record.spec)
    del spec.adapters[:]
    spec.adapters.extend(keep.adapters)
    kept = {each.name for each in keep.adapters}
    dropped = dict.fromkeys((*record.dropped_adapters, *keep.dropped))
    return {"spec": spec, "dropped_adapters": tuple(name for name in dropped if name not in kept)}


def order_of(record: ReplicaRecord) -> inference_pb2.KeepAdapters:
    """What the replica's process is to be told."""
    return inference_pb2.KeepAdapters(
        adapters=record.spec.adapters, dropped=record.dropped_adapters
    )


class KeepForwarder:
    """Tells the processes of one replica what they are to hold, until they have heard it.

    A process is told once when it is ready: it may have been started with an older list.
    """

    def __init__(
        self,
        record: Callable[[], ReplicaRecord],
        probe: ReplicaProbe,
        clock: Clock,
        timings: SupervisionTimings,
    ) -> None:
        self._record = record
        self._probe = probe
        self._clock = clock
        self._timings = timings
        self._untold = asyncio.Event()

    def tell(self) -> None:
        """The list is another one: who runs is to hear it."""
        self._untold.set()

    async def accompany(
        self, ready: asyncio.Event, accepted: Callable[[inference_pb2.KeepAdapters], None]
    ) -> None:
        """Tells one process, from when it is ready on, for as long as it lives."""
        spec = self._record().spec
        if spec.adapters or spec.max_adapters or spec.max_adapter_rank:
            self._untold.set()
        while True:
            await self._untold.wait()
            await ready.wait()
            self._untold.clear()
            order = order_of(self._record())
            if await self._was_accepted(order):
                accepted(order)
            else:
                self._untold.set()
                await self._clock.sleep(self._timings.keep_again_after)

    async def _was_accepted(self, order: inference_pb2.KeepAdapters) -> bool:
        record = self._record()
        try:
            await self._probe.keep_adapters(record.where, order, within=self._timings.ping_timeout)
        except Unavailable as error:
            log.info("replica %s is told again what to hold: %s", record.spec.replica_id, error)
            return False
        except InvalidInput as error:
            log.error("replica %s does not hold what it is to: %s", record.spec.replica_id, error)
        return True
