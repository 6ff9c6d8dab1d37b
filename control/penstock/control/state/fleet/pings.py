"""What the head's own calls to replicas prove.

A ping that fails proves little: the head may be what is cut off. Nothing counts as gone unless the
machine itself refused the connection and no agent vouches for the replica; and what pings say alone
never takes the last replica out of the routes (`serving.py`).
"""

from __future__ import annotations

from datetime import datetime
from enum import Enum, auto

from penstock.control.state.cluster import ClusterView
from penstock.control.state.fleet.health import vouched_for
from penstock.control.state.fleet.liveness import TIMEOUTS_ARE_DOUBT, PingCount, process_of
from penstock.control.state.fleet.replica import Evidence, Replica, ReplicaId

REFUSALS_ARE_GONE = 2
# Deep checks in a row that generated nothing.
WEDGED_AFTER = 2


class Ping(Enum):
    """What one Health call to a replica came to."""

    ANSWERED = auto()
    REFUSED = auto()  # its machine says that nothing listens there
    TIMED_OUT = auto()  # no answer, for whatever reason


def pinged(
    view: ClusterView,
    before: PingCount,
    replica_id: ReplicaId,
    address: str,
    ping: Ping,
    now: datetime,
) -> tuple[ClusterView, PingCount]:
    """A ping to a replica at this address ended: what follows from it, after the count of those
    before it. Stale ones, of a former process, are ignored."""
    replica = view.replicas.get(replica_id)
    if replica is None or replica.status.address != address:
        return view, before
    if ping is Ping.ANSWERED:
        if replica.evidence is not Evidence.WEDGED:
            view = view.with_replica(replica.judged(Evidence.ANSWERS, now))
        return view, PingCount()
    if before.process != process_of(replica):
        before = PingCount()
    refused = before.refused + 1 if ping is Ping.REFUSED else 0
    count = PingCount(before.failed + 1, refused, process_of(replica))
    return view.with_replica(replica.judged(_verdict(view, replica, count), now)), count


def deeply_checked(
    view: ClusterView, replica_id: ReplicaId, address: str, failures: int, now: datetime
) -> ClusterView:
    """A deep check of a replica ended; `failures` in a row, this one included."""
    replica = view.replicas.get(replica_id)
    if replica is None or replica.status.address != address:
        return view
    if failures >= WEDGED_AFTER:
        return view.with_replica(replica.judged(Evidence.WEDGED, now))
    if failures == 0 and replica.evidence is Evidence.WEDGED:
        return view.with_replica(replica.judged(Evidence.ANSWERS, now))
    return view


def _verdict(view: ClusterView, replica: Replica, count: PingCount) -> Evidence:
    if replica.evidence is Evidence.WEDGED:
        return Evidence.WEDGED
    if count.refused >= REFUSALS_ARE_GONE:
        return Evidence.DOUBTED if vouched_for(view, replica) else Evidence.GONE
    if count.failed >= TIMEOUTS_ARE_DOUBT and replica.evidence is not Evidence.GONE:
        return Evidence.DOUBTED
    return replica.evidence
