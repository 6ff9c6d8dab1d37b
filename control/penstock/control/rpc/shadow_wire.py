"""Shadows: values of `state/` to messages of routes.proto and comparer.proto, and back."""

from __future__ import annotations

from penstock.control.declared.messages import message_of, value_of
from penstock.control.state.shadow.comparing import Order
from penstock.control.state.shadow.routes import ShadowRoute
from penstock.control.state.shadow.spec import Record, Sample
from penstock.control.state.tenancy.spend import NANO
from penstock.v1 import comparer_pb2, routes_pb2


def shadow_rule(route: ShadowRoute) -> routes_pb2.ShadowRule:
    """A shadow as every gateway reads it."""
    shadow, spec = route.shadow, route.shadow.spec
    return message_of(
        routes_pb2.ShadowRule,
        route,
        shadow,
        spec,
        primary=spec.primary.deployment,
        primary_alias=spec.primary.alias,
        candidate=spec.candidate.deployment,
        candidate_adapter=spec.candidate.adapter,
        by_session=spec.sample is Sample.SESSION,
        nanousd_per_day=round(spec.usd_per_day * NANO),
    )


def order(message: comparer_pb2.ShadowOrder) -> Order:
    """A shadow as the comparer needs it."""
    return value_of(
        Order,
        message,
        margins=tuple(sorted(message.margins.items())),
        record=Record(message.record or Record.NONE.value),
        guardrails=tuple(sorted(message.guardrails.items())),
    )


def order_message(value: Order) -> comparer_pb2.ShadowOrder:
    """The inverse of `order`."""
    named = {"margins": dict(value.margins), "guardrails": dict(value.guardrails)}
    return message_of(comparer_pb2.ShadowOrder, value, record=value.record.value, **named)
