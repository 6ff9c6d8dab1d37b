"""A second of a canary's life, as one change of the view: what gateways told since the last one is
taken in, and what follows is decided from it. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Final

from penstock.control.errors import PenstockError
from penstock.control.state.canary.canary import Canary, CanaryState, Counted
from penstock.control.state.canary.counts import Counts, Reading
from penstock.control.state.canary.deciding import decided
from penstock.control.state.canary.ending import moved_on
from penstock.control.state.canary.facts import facts_of
from penstock.control.state.canary.guards import Finding, edges_of, findings
from penstock.control.state.canary.spec import CanarySpec
from penstock.control.state.cluster import ClusterView, Gateway

MOST_READINGS: Final = 1000
"""Processes of gateways whose counts of a step are kept. What more of them count is left out, of
both arms alike: it makes the evidence less, and none wrong."""

Findings = Callable[[CanarySpec, Counted], tuple[Finding, ...]]


def findings_of(spec: CanarySpec, counted: Counted) -> tuple[Finding, ...]:
    """What each guard says; nothing before a step is shared."""
    if not counted.step:
        return ()
    return findings(spec, counted.step, counted.counts, counted.edges)


def judged(
    view: ClusterView, canary: Canary, now: datetime, find: Findings = findings_of
) -> ClusterView:
    """The view a second on; the same one where nothing was told and nothing follows."""
    known = view.canaries.counted_of(canary)
    counted = taken_in(known, canary, view.gateways, now)
    if counted != known:
        view = replace(view, canaries=view.canaries.having_counted(counted))
    facts = facts_of(view, canary, counted, now)
    after = decided(canary, counted, find(canary.spec, counted), facts)
    if after == canary:
        return view
    try:
        return moved_on(view, after, now)
    except PenstockError as error:  # what a promotion asks for cannot be
        held = replace(canary, state=CanaryState.HELD, why=str(error))
        return replace(view, canaries=view.canaries.having(held))


def taken_in(
    counted: Counted, canary: Canary, gateways: Mapping[str, Gateway], now: datetime
) -> Counted:
    """What was counted, with the latest that gateways told of this run's step."""
    if not counted.step or not canary.is_active:
        return counted
    readings = {(each.gateway, each.instance): each for each in counted.readings}
    for gateway in gateways.values():
        for told in gateway.report.canaries if gateway.report else ():
            if (told.uid, told.step) == (counted.uid, counted.step):
                instance = gateway.report.instance if gateway.report else ""
                _take(readings, Reading(gateway.id, instance, now, told.counts))
    found = tuple(reading for _, reading in sorted(readings.items()))
    if found == counted.readings:
        return counted
    counted = replace(counted, readings=found)
    return replace(counted, edges=edges_of(counted.edges, counted.counts))


def _take(readings: dict[tuple[str, str], Reading], told: Reading) -> None:
    """A process counts on: a report that comes late, or twice, says nothing new."""
    which = (told.gateway, told.instance)
    known = readings.get(which)
    highest = (known.counts if known else Counts()).highest(told.counts)
    if (known is None and len(readings) < MOST_READINGS) or (known and highest != known.counts):
        readings[which] = replace(told, counts=highest)
