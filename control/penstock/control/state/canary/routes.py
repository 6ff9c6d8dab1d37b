"""Canaries as gateways are told of them: the shares that they give, and the rules by which both
arms are counted. Pure.

Both follow from what is active: the settings of a deployment and the moves of an alias stay as
people made them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from penstock.adapters.adapter import AdapterRef
from penstock.adapters.alias import Alias, Target
from penstock.control.state.canary.canary import Canary
from penstock.control.state.canary.spec import WHOLE
from penstock.control.state.cluster import ClusterView
from penstock.control.state.rollout.deployment import DeploymentName


@dataclass(frozen=True, slots=True)
class CanaryShare:
    """Who gets a share of a deployment's sessions; fields as in routes.proto, `CanaryWeight`."""

    deployment: str
    permille: int
    template_digest: str = ""


@dataclass(frozen=True, slots=True)
class CanaryRoute:
    """Whose sessions are counted; fields as in routes.proto, `CanaryRule`."""

    uid: str
    name: str
    step: int
    deployment: str
    alias: str
    candidate: str
    candidate_adapter: str
    candidate_digest: str
    stable_adapter: str
    permille: int
    warmup_requests: int


def canary_routes(view: ClusterView) -> tuple[CanaryRoute, ...]:
    """The rules of those that share anything out."""
    return tuple(
        _rule(canary)
        for name in sorted(view.canaries.shared)
        for canary in view.canaries.shared[name]
        if canary.shared_step and _is_shared(view, canary)
    )


def weights_of(view: ClusterView, deployment: str) -> tuple[CanaryShare, ...]:
    """The shares that canaries give of what is asked of a deployment itself."""
    return tuple(_weights(view, deployment))


def target_of(view: ClusterView, alias: Alias) -> Target:
    """What an alias names, as the canary that has it shares it out."""
    for canary in view.canaries.shared.get(alias.deployment, ()):
        if canary.target.alias == alias.name and _is_shared(view, canary):
            stable, candidate = AdapterRef.parse(canary.stable), AdapterRef.parse(canary.candidate)
            share = canary.permille
            return Target.split({stable: WHOLE - share, candidate: share})
    return alias.target


def _weights(view: ClusterView, deployment: str) -> Iterator[CanaryShare]:
    for canary in view.canaries.shared.get(deployment, ()):
        if canary.target.alias or not _is_shared(view, canary):
            continue
        if digest := canary.candidate_digest:
            # Of no share, too: nobody comes to its replicas then.
            yield CanaryShare(deployment, canary.permille, digest)
        elif canary.shared_step:
            yield CanaryShare(canary.candidate, canary.permille)


def _is_shared(view: ClusterView, canary: Canary) -> bool:
    """Not where the candidate is there no more, nor once a revision is rolled out to the end: then
    its replicas take their part as they come, but where they have had everything already."""
    if digest := canary.candidate_digest:
        deployment = view.deployments.get(DeploymentName(canary.target.deployment))
        is_whole = canary.permille == WHOLE or not canary.promoting
        return is_whole and deployment is not None and deployment.template_digest == digest
    if canary.target.alias:
        return canary.candidate in view.adapters.names()
    return canary.candidate in view.deployments


def _rule(canary: Canary) -> CanaryRoute:
    is_alias, digest = bool(canary.target.alias), canary.candidate_digest
    return CanaryRoute(
        uid=canary.uid,
        name=canary.spec.name,
        step=canary.shared_step,
        deployment=canary.target.deployment,
        alias=canary.target.alias,
        candidate="" if is_alias or digest else canary.candidate,
        candidate_adapter=canary.candidate if is_alias else "",
        candidate_digest=digest,
        stable_adapter=canary.stable if is_alias else "",
        permille=canary.permille,
        warmup_requests=canary.spec.guards.warmup_requests,
    )
