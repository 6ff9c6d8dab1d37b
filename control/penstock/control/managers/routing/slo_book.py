"""What gateways judge by objectives, added up over gateways, and over the last hours.

Only what comes while this head listens: a gateway that has counted for days says nothing of this
hour by that. One thread writes; `totals` may be read from any.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from penstock.control.state.cluster import DeploymentCounts
from penstock.control.state.routing.slo import WINDOWS, Burn, Slo, SloCount, burns

SLICE: Final = timedelta(minutes=1)
"""The counts of a window are kept in slices of this."""

_Key = tuple[str, str]  # deployment, objective
_Counts = dict[_Key, SloCount]


@dataclass(frozen=True, slots=True)
class _Slice:
    """What came from `begin` on, for `SLICE`."""

    begin: datetime
    count: SloCount


class SloBook:
    """Takes what gateways report of objectives."""

    def __init__(self) -> None:
        # By gateway: its latest counts, by the instance that counts; of the last two, since one
        # that ends may be heard between those of its next life.
        self._latest: dict[str, dict[str, _Counts]] = {}
        self._totals: dict[_Key, SloCount] = {}
        self._slices: dict[_Key, deque[_Slice]] = {}

    def observe(
        self, gateway_id: str, instance: str, counts: Iterable[DeploymentCounts], now: datetime
    ) -> None:
        """A gateway's report; another instance of it counts from 0 again."""
        known = self._latest.setdefault(gateway_id, {})
        is_new, before = not known, known.pop(instance, {})
        latest = {(of.deployment, each.objective): each for of in counts for each in of.slo}
        self._latest[gateway_id] = dict([*known.items(), (instance, latest)][-2:])
        if is_new:
            return
        for key, count in latest.items():
            earlier = before.get(key, SloCount(key[1]))
            if (new := count.since(earlier)).requests:
                self._note(key, new, now)

    def keep(self, gateways: Collection[str], deployments: Collection[str]) -> None:
        """Forgets gateways and deployments that are no more."""
        for gone in self._latest.keys() - set(gateways):
            del self._latest[gone]
        for key in [key for key in self._totals if key[0] not in deployments]:
            del self._totals[key]
            del self._slices[key]

    def totals(self) -> Mapping[_Key, SloCount]:
        """Since this head heard of each gateway, by deployment and objective."""
        return dict(tuple(self._totals.items()))

    def burns(self, deployment: str, slo: Slo, now: datetime) -> tuple[Burn, ...]:
        """Of each objective of a deployment, over each window."""
        return burns(slo, self._windows(deployment, slo, now))

    def _windows(
        self, deployment: str, slo: Slo, now: datetime
    ) -> Iterator[tuple[timedelta, SloCount]]:
        for objective in slo.budgets():
            slices = self._slices.get((deployment, objective), ())
            for window in WINDOWS:
                counts = [each.count for each in slices if now - each.begin < window]
                requests, bad = sum(it.requests for it in counts), sum(it.bad for it in counts)
                yield window, SloCount(objective, requests, bad)

    def _note(self, key: _Key, new: SloCount, now: datetime) -> None:
        self._totals[key] = self._totals.get(key, SloCount(key[1])).plus(new)
        slices = self._slices.setdefault(key, deque())
        while slices and now - slices[0].begin >= WINDOWS[-1]:
            slices.popleft()
        if slices and now - slices[-1].begin < SLICE:
            slices[-1] = _Slice(slices[-1].begin, slices[-1].count.plus(new))
        else:
            slices.append(_Slice(now, new))
