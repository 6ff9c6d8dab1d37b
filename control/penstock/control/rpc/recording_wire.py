"""Recordings: values of `state/` to messages of routes.proto and comparer.proto, and back."""

from __future__ import annotations

from penstock.control.state.recording.orders import RecordingRoute
from penstock.control.state.recording.recorded import RecordingOrder, RecordingStanding
from penstock.control.state.shadow.spec import Record, Sample
from penstock.v1 import comparer_pb2, routes_pb2


def recording_rule(route: RecordingRoute) -> routes_pb2.ShadowRule:
    """A recording as every gateway reads it: a shadow that asks nobody."""
    recording, spec = route.recording, route.recording.spec
    return routes_pb2.ShadowRule(
        uid=recording.uid,
        name=spec.name,
        primary=spec.primary.deployment,
        primary_alias=spec.primary.alias,
        seed=recording.seed,
        share_permille=spec.share_permille,
        by_session=spec.sample is Sample.SESSION,
        tenants=spec.tenants,
        endpoints=route.endpoints,
    )


def recording_order(message: comparer_pb2.RecordingOrder) -> RecordingOrder:
    """A recording as the comparer needs it."""
    return RecordingOrder(
        message.uid,
        Record(message.record),
        message.began_ms,
        message.most_requests,
        message.most_bytes,
        ended=message.ended,
    )


def recording_order_message(value: RecordingOrder) -> comparer_pb2.RecordingOrder:
    """The inverse of `recording_order`."""
    return comparer_pb2.RecordingOrder(
        uid=value.uid,
        record=value.record.value,
        began_ms=value.began_ms,
        most_requests=value.most_requests,
        most_bytes=value.most_bytes,
        ended=value.ended,
    )


def recording_standing(message: comparer_pb2.RecordingStanding) -> RecordingStanding:
    """How the comparer says that a recording stands."""
    return RecordingStanding(
        message.uid,
        message.requests,
        message.bytes,
        message.kept,
        message.unreadable,
        dict(message.left_out),
    )
