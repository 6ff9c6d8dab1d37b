"""Replicas that gateways doubt: that they send nothing to by their own judgement.

A doubt is shown, and is a reason to look at the replica soon. It ends nothing by itself: one
gateway may be what is cut off.
"""

from __future__ import annotations

from dataclasses import dataclass

from penstock.control.state.cluster import ClusterView
from penstock.control.state.fleet.replica import ReplicaId


@dataclass(frozen=True, slots=True)
class Doubt:
    """What one gateway has against a replica."""

    gateway: str
    reason: str  # unreachable, failing, slow or no_progress
    for_ms: int  # milliseconds that it will stand yet, unless the replica proves well


def doubts_in(view: ClusterView) -> dict[ReplicaId, list[Doubt]]:
    """The doubts of all gateways that report, by replica, in order of the gateways' ids."""
    found: dict[ReplicaId, list[Doubt]] = {}
    for gateway_id, gateway in sorted(view.gateways.items()):
        report = gateway.report if gateway.reporting else None
        for replica_id, reason, for_ms in report.doubts if report else ():
            found.setdefault(ReplicaId(replica_id), []).append(Doubt(gateway_id, reason, for_ms))
    return found
