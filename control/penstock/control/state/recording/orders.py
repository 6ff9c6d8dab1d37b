"""Recordings as comparer and gateways are told of them. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from penstock.control.errors import InvalidInput, NotFound
from penstock.control.state.cluster import ClusterView
from penstock.control.state.recording.recorded import RecordingOrder
from penstock.control.state.recording.recordings import Recording
from penstock.control.state.recording.spec import ENDPOINTS, RecordingSpec
from penstock.control.state.shadow.naming import check_primary, check_tenants


@dataclass(frozen=True, slots=True)
class RecordingRoute:
    """A recording as gateways need it."""

    recording: Recording
    endpoints: tuple[str, ...]


def recording_routes(view: ClusterView) -> tuple[RecordingRoute, ...]:
    """Those that are under way, from when the comparer knows them."""
    return tuple(_routes(view))


def _routes(view: ClusterView) -> Iterator[RecordingRoute]:
    for _, found in sorted(view.recordings.named.items()):
        idle = found.ended or found.uid not in view.shadows.compared.known
        if not idle and found.spec.primary.deployment in view.deployments:
            yield RecordingRoute(found, found.spec.endpoints or ENDPOINTS)


def order_of(recording: Recording) -> RecordingOrder:
    """What the comparer is to know of it."""
    spec = recording.spec
    return RecordingOrder(
        recording.uid,
        spec.record,
        round(recording.created_at.timestamp() * 1000),
        spec.until.requests,
        spec.until.mib << 20,
        ended=bool(recording.ended),
    )


def check_named(view: ClusterView, spec: RecordingSpec) -> None:
    """Raises InvalidInput for what nobody could record."""
    check_primary(view, spec.primary)
    check_tenants(view, spec.tenants)


def waits_for(view: ClusterView, recording: Recording) -> str:
    """Why it records nothing for now, or has ended; empty: it records."""
    if recording.ended:
        return recording.ended
    try:
        check_primary(view, recording.spec.primary)
    except (InvalidInput, NotFound) as error:
        return str(error)
    compared = view.shadows.compared
    if compared.trouble:
        return f"the comparer {compared.trouble}"
    return "" if recording.uid in compared.known else "the comparer starts"
