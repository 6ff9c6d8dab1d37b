"""Tenants and keys: values of `state/` to messages of routes.proto."""

from __future__ import annotations

from penstock.control.declared.messages import message_of, numbers_of
from penstock.control.rpc.wire import milliseconds
from penstock.control.state.routing.snapshot import RouteSnapshot
from penstock.control.state.tenancy.shares import share_of
from penstock.control.state.tenancy.spend import NANO
from penstock.control.state.tenancy.stream_shares import streams_of
from penstock.control.state.tenancy.tenancy import TenantRoute
from penstock.control.state.tenancy.tenants import ApiKey, Degrade, Fallbacks, Priority, Shadowing
from penstock.v1 import routes_pb2

_PRIORITIES = numbers_of(routes_pb2.PriorityClass.DESCRIPTOR, Priority)


def tenant(route: TenantRoute) -> routes_pb2.Tenant:
    """A tenant as every gateway reads it, without the share that is the gateway's own."""
    spec = route.tenant.spec
    return message_of(
        routes_pb2.Tenant,
        route,
        route.tenant,  # its own salt where its spec says none
        spec,
        nanousd_per_day=round(spec.usd_per_day * NANO),
        keys=[_key(key) for key in route.keys],
        priority=_PRIORITIES[spec.priority],
        degrade_never=spec.degrade is Degrade.NEVER,
        fallbacks_listed=spec.fallbacks is Fallbacks.LISTED,
        shadow_never=spec.shadow is Shadowing.NEVER,
    )


def with_shares(
    message: routes_pb2.RouteSnapshot, snapshot: RouteSnapshot, gateway: str
) -> routes_pb2.RouteSnapshot:
    """What is for this gateway: the message itself where there are no tenants."""
    if not message.tenants:
        return message
    own, shares = routes_pb2.RouteSnapshot(), snapshot.routes.shares
    own.CopyFrom(message)
    for each in own.tenants:
        each.share_permille = share_of(shares, gateway, each.id)
        told = shares.streams.get(each.id)
        each.max_streams_here = streams_of(told, shares.members, gateway, each.max_streams)
    return own


def _key(key: ApiKey) -> routes_pb2.ApiKey:
    return message_of(
        routes_pb2.ApiKey,
        key,
        sha256=bytes.fromhex(key.digest),
        expires_at_ms=milliseconds(key.expires_at) if key.expires_at else 0,
        nanousd_per_day=round(key.usd_per_day * NANO),
    )
