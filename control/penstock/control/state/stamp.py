"""Whose message it is: values with the fields of common.proto, `ClusterStamp`."""

from __future__ import annotations

from dataclasses import dataclass

START_ONCE = "start `penstock head`, or `penstock serve`, once with --take-over"


@dataclass(frozen=True, slots=True)
class Stamp:
    """A cluster's id, its head's epoch, and the revision of its store."""

    cluster_id: str = ""  # empty: the sender belongs to no cluster yet
    epoch: int = 0
    revision: int = 0

    def __bool__(self) -> bool:
        return bool(self.cluster_id)

    def __str__(self) -> str:
        return f"cluster {self.cluster_id[:8]}, epoch {self.epoch}, revision {self.revision}"


def contradiction(own: Stamp, observed: Stamp) -> str:
    """Why a head with this stamp must not act on one that was heard; empty: it may.

    Whoever was heard has accepted that stamp from a head. So that head, or this one's own store at
    a later time, knew more than this one does.
    """
    if not observed:
        return ""
    if observed.cluster_id != own.cluster_id:
        return f"belongs to another cluster ({observed}; this store: {own})"
    if observed.epoch > own.epoch:
        return f"was taken over by another head ({observed}; this store: {own})"
    if observed.epoch == own.epoch and observed.revision > own.revision:
        return f"knows a later state than this store ({observed}; this store: {own})"
    return ""
