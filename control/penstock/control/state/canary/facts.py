"""What a canary's next decision looks at beside the counts: as the view has it. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from penstock.control.state.canary.canary import Canary, Counted
from penstock.control.state.canary.replicas import missing, wanted
from penstock.control.state.cluster import ClusterView, Gateway, GatewayState
from penstock.control.state.fleet.replica import Replica
from penstock.control.state.fleet.serving import serving
from penstock.control.state.rollout.deployment import Deployment, DeploymentName
from penstock.control.state.rollout.revision import RevisionState

MISSED_FOR: Final = timedelta(minutes=5)
"""How long a gateway that counted is missed that a head which has just started does not know."""

_SERVES_NOBODY: Final = frozenset({GatewayState.BACKOFF, GatewayState.STOPPED})


class Rollout(StrEnum):
    """How it goes with the revision by which the target becomes what the candidate is."""

    NONE = "none"  # nothing is promoted, or nothing is rolled out for it
    UNDER_WAY = "under way"
    PAUSED = "paused"
    SERVED = "served"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Facts:
    """The moment, and what is so at it."""

    now: datetime
    wanted: int = 1  # ready replicas of the candidate, for the share of the step that it is at
    ready: int = 1  # that there are
    why_few: str = ""  # why there are fewer; empty: nobody knows more
    silent: tuple[str, ...] = ()  # as people read it: gateways of which nothing is known
    behind: tuple[str, ...] = ()  # gateways that do not route by the step yet
    gone: str = ""  # what of its arms there is no more; empty: all is there
    shadow: str = ""  # the verdict of the shadow that it names; empty: it names none
    rollout: Rollout = Rollout.NONE
    rollout_cause: str = ""  # why it failed


def facts_of(view: ClusterView, canary: Canary, counted: Counted, now: datetime) -> Facts:
    """What is so now of a canary that is active."""
    gone, target = (
        _gone(view, canary),
        view.deployments.get(DeploymentName(canary.target.deployment)),
    )
    rollout, cause = _rollout(canary, target)
    facts = Facts(now, gone=gone, rollout=rollout, rollout_cause=cause)
    if gone or target is None:
        return facts
    silent, behind = _gateways(view, canary, counted, now)
    asked, ready = wanted_of(view, canary, target), sum(1 for _ in _ready(view, canary, target))
    return Facts(
        now,
        wanted=asked,
        ready=ready,
        why_few=missing(view, canary) if canary.candidate_digest and ready < asked else "",
        silent=tuple(silent),
        behind=tuple(behind),
        shadow=_verdict(view, canary),
        rollout=rollout,
        rollout_cause=cause,
    )


def wanted_of(view: ClusterView, canary: Canary, target: Deployment) -> int:
    """Ready replicas of the candidate that the share of its step asks for."""
    share = wanted(view, canary)
    if canary.target.alias:
        alias = view.adapters.alias(canary.target.deployment, canary.target.alias)
        return share if alias.preload is None else min(share, alias.preload)
    judged = target.revision if canary.candidate_digest else None
    candidate = judged or view.deployment(canary.candidate).target
    return 1 if candidate.template.is_managed else max(share, 1)


def _ready(view: ClusterView, canary: Canary, target: Deployment) -> Iterator[Replica]:
    """Those that the candidate's share would go to."""
    if canary.target.alias:
        return (r for r in serving(view, target) if canary.candidate in r.status.adapters)
    if digest := canary.candidate_digest:
        return (r for r in serving(view, target) if r.template_digest == digest)
    return iter(serving(view, view.deployment(canary.candidate)))


def _gone(view: ClusterView, canary: Canary) -> str:
    """Canaries own their arms; but a document of the store may not be readable any more."""
    target = canary.target
    if target.deployment not in view.deployments:
        return f"there is no deployment {target.deployment!r} any more"
    if target.alias:
        if f"{target.deployment}:{target.alias}" not in view.adapters.aliases:
            return f"there is no alias {target} any more"
        if canary.candidate not in view.adapters.names():
            return f"nobody may ask for {canary.candidate} any more"
    elif not canary.candidate_digest and canary.candidate not in view.deployments:
        return f"there is no deployment {canary.candidate!r} any more"
    return ""


def _gateways(
    view: ClusterView, canary: Canary, counted: Counted, now: datetime
) -> tuple[list[str], list[str]]:
    """Gateways that may serve clients: of which nothing is known, and which have no such step."""
    serve = [each for _, each in sorted(view.gateways.items()) if _may_serve(each)]
    silent = [f"gateway {each.id} does not report" for each in serve if not each.reporting]
    of_heads_before = {
        reading.gateway
        for reading in counted.readings
        if reading.gateway not in view.gateways and now - reading.at < MISSED_FOR
    }
    silent += [f"gateway {each} has not been heard of" for each in sorted(of_heads_before)]
    behind = [each.id for each in serve if each.reporting and not _has_step(each, canary)]
    return silent or ([] if serve else ["no gateway reports"]), behind


def _may_serve(gateway: Gateway) -> bool:
    starts = gateway.state is GatewayState.STARTING and not gateway.reporting
    return gateway.state not in _SERVES_NOBODY and not starts


def _has_step(gateway: Gateway, canary: Canary) -> bool:
    """A gateway tells the counts of all rules that it has, and rules and shares come together."""
    told = gateway.report.canaries if gateway.report else ()
    return any((each.uid, each.step) == (canary.uid, canary.shared_step) for each in told)


def _verdict(view: ClusterView, canary: Canary) -> str:
    """Of the shadow that it names; "undecided" where nobody has said one."""
    if not canary.spec.shadow:
        return ""
    shadow = view.shadows.named.get(canary.spec.shadow)
    return (view.shadows.compared.verdicts.get(shadow.uid, "") if shadow else "") or "undecided"


def _rollout(canary: Canary, target: Deployment | None) -> tuple[Rollout, str]:
    """Of the revision that is the candidate, or that the promotion made."""
    if not canary.revision or target is None:
        return Rollout.NONE, ""
    found = next((r for r in target.revisions if r.number == canary.revision), None)
    if found is None or (found.state is RevisionState.REPLACED):
        return Rollout.FAILED, "another revision has taken its place"
    state = _STATES[found.state]
    stands = state is Rollout.UNDER_WAY and target.paused
    return (Rollout.PAUSED if stands else state), found.cause


_STATES: Final = {
    RevisionState.JUDGED: Rollout.UNDER_WAY,
    RevisionState.ROLLING_OUT: Rollout.UNDER_WAY,
    RevisionState.SERVED: Rollout.SERVED,
    RevisionState.FAILED: Rollout.FAILED,
}
