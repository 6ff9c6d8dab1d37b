"""Recordings: values of `state/` to messages of routes.proto and comparer.proto, and back."""

from __future__ import annotations

from penstock.control.declared.messages import message_of, value_of
from penstock.control.state.recording.orders import RecordingRoute
from penstock.control.state.recording.recorded import RecordingOrder, RecordingStanding
from penstock.control.state.shadow.spec import Record, Sample
from penstock.v1 import comparer_pb2, routes_pb2


def recording_rule(route: RecordingRoute) -> routes_pb2.ShadowRule:
    """A recording as every gateway reads it: a shadow that asks nobody."""
    recording, spec = route.recording, route.recording.spec
    return message_of(
        routes_pb2.ShadowRule,
        route,
        recording,
        spec,
        primary=spec.primary.deployment,
        primary_alias=spec.primary.alias,
        by_session=spec.sample is Sample.SESSION,
    )


def recording_order(message: comparer_pb2.RecordingOrder) -> RecordingOrder:
    """A recording as the comparer needs it."""
    return value_of(RecordingOrder, message, record=Record(message.record))


def recording_order_message(value: RecordingOrder) -> comparer_pb2.RecordingOrder:
    """The inverse of `recording_order`."""
    return message_of(comparer_pb2.RecordingOrder, value, record=value.record.value)


def recording_standing(message: comparer_pb2.RecordingStanding) -> RecordingStanding:
    """How the comparer says that a recording stands."""
    return value_of(RecordingStanding, message, left_out=dict(message.left_out))
