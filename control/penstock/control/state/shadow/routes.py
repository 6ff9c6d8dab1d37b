"""Shadows as gateways are told of them. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from penstock.control.state.cluster import ClusterView
from penstock.control.state.shadow.shadows import Shadow
from penstock.control.state.shadow.spec import ENDPOINTS, FEW_SELF, MANY_SELF


@dataclass(frozen=True, slots=True)
class ShadowRoute:
    """A shadow as gateways need it."""

    shadow: Shadow
    endpoints: tuple[str, ...]
    self_permille: int
    budget_used_up: bool


def shadow_routes(view: ClusterView) -> tuple[ShadowRoute, ...]:
    """Those that are under way, from when the comparer knows them: before that, pairs of theirs
    would be nobody's."""
    return tuple(_routes(view))


def _routes(view: ClusterView) -> Iterator[ShadowRoute]:
    compared = view.shadows.compared
    for _, shadow in sorted(view.shadows.named.items()):
        spec = shadow.spec
        idle = shadow.paused or shadow.ended or shadow.uid not in compared.known
        asked = {name for _, name in spec.asked}
        named = {spec.primary.deployment, spec.candidate.deployment, *asked}
        if idle or not named <= view.deployments.keys():
            continue
        usual = FEW_SELF if shadow.uid in compared.enough_self else MANY_SELF
        yield ShadowRoute(
            shadow,
            spec.endpoints or ENDPOINTS,
            usual if spec.self_permille is None else spec.self_permille,
            shadow.uid in compared.used_up,
        )
