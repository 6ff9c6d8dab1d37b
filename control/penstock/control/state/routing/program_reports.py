"""How deployments' router programs fare: where they are asked, what failed, what runs. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from penstock.control.state.cluster import ClusterView, Gateway
from penstock.control.state.fleet.liveness import Liveness
from penstock.control.state.rollout.deployment import Deployment
from penstock.control.state.routing.limits import SelectionPolicy
from penstock.control.state.routing.program import Texts
from penstock.control.state.routing.program_counts import ProgramCounts
from penstock.control.state.routing.program_setting import digest_in

INSTEAD = "its requests go by power_of_two there"
TOLD_WITHIN: Final = timedelta(seconds=5)
"""After a change: until then each node agent has heard of it, and says what it makes of it."""


@dataclass(frozen=True, slots=True)
class ProgramAt:
    """What one gateway says of a program."""

    gateway: str
    counts: ProgramCounts


@dataclass(frozen=True, slots=True)
class ProgramOn:
    """What one node agent says of a program's process."""

    node: str
    digest: str
    running: bool
    restarts: int
    last_error: str


def asks_program(deployment: Deployment) -> bool:
    """Whether a program is to say where its requests go."""
    return deployment.spec.sharing.policy is SelectionPolicy.PROGRAM


def programs_at(view: ClusterView, deployment: Deployment) -> Iterator[ProgramAt]:
    """What gateways that report say, in order of their ids."""
    for gateway_id, gateway in sorted(view.gateways.items()):
        said = _said(gateway).get(deployment.spec.name) if gateway.reporting else None
        if said:
            yield ProgramAt(gateway_id, said)


def programs_on(live: Liveness, deployment: Deployment) -> Iterator[ProgramOn]:
    """What agents said when they were last heard, in order of their ids."""
    for node_id, observed in sorted(live.nodes.items()):
        for it in observed.programs:
            if it.deployment_uid == deployment.uid:
                yield ProgramOn(node_id, it.digest, it.running, it.restarts, it.last_error)


def program_starts(live: Liveness, deployment: Deployment, now: datetime) -> bool:
    """Whether processes of its program begin, and none has failed to."""
    on = list(programs_on(live, deployment))
    if any(it.last_error for it in on):
        return False
    if not on:
        return now - deployment.updated_at <= TOLD_WITHIN
    return not all(it.running for it in on)


def program_trouble(
    view: ClusterView, live: Liveness, deployment: Deployment, shipped: Texts, now: datetime
) -> str:
    """Where its program is not asked, and why; empty: it is wherever it should be."""
    program = deployment.spec.sharing.program
    if program is None or not asks_program(deployment):
        return ""
    if not digest_in(program, shipped):
        there = f"there are {', '.join(sorted(shipped)) or 'none'}"
        return (
            f"no program {program.known_as} ships with this Penstock, as one did when it was set:"
            f" its requests go by power_of_two; set another one, {there}, or give its file"
        )
    silent = [it for it in programs_at(view, deployment) if it.counts.unavailable]
    if not silent:
        return ""
    if program_starts(live, deployment, now):
        at = ", ".join(it.gateway for it in silent)
        return f"its program is being started, {INSTEAD} until then: gateway {at}"
    where = "; ".join(f"gateway {it.gateway}: {it.counts.unavailable}" for it in silent)
    on = programs_on(live, deployment)
    errors = [f"; node {it.node}: {it.last_error}" for it in on if it.last_error]
    return f"its program is not asked, {INSTEAD}: {where}{''.join(errors)}"


def signs(view: ClusterView) -> tuple[object, ...]:
    """All that a program's events follow from: equal signs, no events."""
    return tuple(
        (gateway.id, name, it.digest, it.unavailable, *(f.reason for f in it.failures if f.count))
        for gateway in view.gateways.values()
        for name, it in _said(gateway).items()
    )


@dataclass(frozen=True, slots=True)
class ProgramChange:
    """What has become of a program at a gateway: as it was said before, and now."""

    deployment: str
    gateway: str
    was: ProgramCounts
    now: ProgramCounts

    @property
    def new_failures(self) -> Iterator[str]:
        """What went wrong for the first time: reason and last words."""
        before = {each.reason for each in self.was.failures if each.count}
        for each in self.now.failures:
            if each.count and each.reason not in before:
                yield f"{each.reason}: {each.last}" if each.last else each.reason

    @property
    def told(self) -> str:
        """Its counts."""
        it = self.now
        return f"asked {it.asked} times, it decided {it.decided} times, {it.failed} failed"


def program_changes(before: ClusterView, after: ClusterView) -> Iterator[ProgramChange]:
    """What gateways' processes say otherwise of the program that they had before, too."""
    for gateway_id, gateway in after.gateways.items():
        was = before.gateways.get(gateway_id)
        if was is None or was is gateway or _instance(was) != _instance(gateway):
            continue
        known = _said(was)
        for name, now in _said(gateway).items():
            if name in known and known[name].digest == now.digest and known[name] != now:
                yield ProgramChange(name, gateway_id, known[name], now)


def _said(gateway: Gateway) -> Mapping[str, ProgramCounts]:
    """By deployment."""
    return gateway.report.programs if gateway.report else {}


def _instance(gateway: Gateway) -> str | None:
    return gateway.report.instance if gateway.report else None
