"""Shadows: values of `state/` to messages of routes.proto and comparer.proto, and back."""

from __future__ import annotations

from penstock.control.state.shadow.comparing import Order
from penstock.control.state.shadow.routes import ShadowRoute
from penstock.control.state.shadow.spec import Record, Sample
from penstock.control.state.tenancy.spend import NANO
from penstock.v1 import comparer_pb2, routes_pb2


def shadow_rule(route: ShadowRoute) -> routes_pb2.ShadowRule:
    """A shadow as every gateway reads it."""
    shadow, spec = route.shadow, route.shadow.spec
    return routes_pb2.ShadowRule(
        uid=shadow.uid,
        name=spec.name,
        primary=spec.primary.deployment,
        primary_alias=spec.primary.alias,
        candidate=spec.candidate.deployment,
        candidate_adapter=spec.candidate.adapter,
        seed=shadow.seed,
        share_permille=spec.share_permille,
        by_session=spec.sample is Sample.SESSION,
        tenants=spec.tenants,
        endpoints=route.endpoints,
        max_concurrent=spec.max_concurrent,
        max_per_minute=spec.max_per_minute,
        self_permille=route.self_permille,
        cache_salt=shadow.cache_salt,
        nanousd_per_day=round(spec.usd_per_day * NANO),
        budget_used_up=route.budget_used_up,
        embedder=spec.embedder,
        judge=spec.judge,
    )


def order(message: comparer_pb2.ShadowOrder) -> Order:
    """A shadow as the comparer needs it."""
    return Order(
        message.uid,
        message.primary,
        message.candidate,
        tuple(message.checks),
        tuple(sorted(message.margins.items())),
        embedder=message.embedder,
        judge=message.judge,
        ended=message.ended,
        record=Record(message.record or Record.NONE.value),
        guardrails=tuple(sorted(message.guardrails.items())),
    )


def order_message(value: Order) -> comparer_pb2.ShadowOrder:
    """The inverse of `order`."""
    return comparer_pb2.ShadowOrder(
        uid=value.uid,
        primary=value.primary,
        candidate=value.candidate,
        checks=value.checks,
        margins=dict(value.margins),
        ended=value.ended,
        record=value.record.value,
        embedder=value.embedder,
        judge=value.judge,
        guardrails=dict(value.guardrails),
    )
