"""What gateways count of each deployment, added up over gateways, and over the last minute.

Gateways count since they started, so that a lost report loses nothing; here that becomes counts
which only grow, whichever gateway ends. It changes each second and no plan follows from it, so it
stands beside the view. One thread writes; `totals` may be read from any.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Sequence
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from operator import add, attrgetter, sub

from penstock.control.managers.routing.slo_book import SloBook
from penstock.control.state.cluster import ClusterView, DeploymentCounts
from penstock.control.state.rollout.deployment import DeploymentName
from penstock.control.state.routing.slo import Burn, Slo

MINUTE = timedelta(minutes=1)
# A minute's counts are kept in slices of this.
SLICE = timedelta(seconds=5)


@dataclass(frozen=True, slots=True)
class Totals:
    """Counts of one deployment that only grow; names and units as in routes.proto."""

    requests: int = 0
    rejected: int = 0
    sent: int = 0
    queue_wait_us_sum: int = 0
    resumed: int = 0
    not_resumed: int = 0


_counts_of = attrgetter(*(each.name for each in fields(Totals)))
# The fields of Totals in a row: added up many thousand times a second where there is much to add.
_Row = tuple[int, ...]
_NOTHING: _Row = tuple(0 for _ in fields(Totals))
_REQUESTS = 0  # of a row


@dataclass(frozen=True, slots=True)
class DeploymentTraffic:
    """One deployment at this moment, and in the last minute."""

    queued: int = 0
    in_flight: int = 0
    estimated_wait_ms: int = 0  # of a request that came now to the gateway where it waits longest
    last_minute: Totals = Totals()
    resumed: int = 0  # since its gateways, or this head, started
    not_resumed: int = 0
    burns: tuple[Burn, ...] = ()  # of its objectives

    @property
    def shed_share(self) -> float:
        """Of the last minute's requests, those that admission refused: 0 to 1."""
        requests, rejected = self.last_minute.requests, self.last_minute.rejected
        return min(1.0, rejected / requests) if requests else 0.0

    @property
    def queue_wait_ms(self) -> float:
        """Mean wait of the requests that were sent to a replica in the last minute."""
        sent = self.last_minute.sent
        return self.last_minute.queue_wait_us_sum / sent / 1000 if sent else 0.0


@dataclass(frozen=True, slots=True)
class _Slice:
    """What came from `begin` on, for `SLICE`."""

    begin: datetime
    counts: _Row


class Traffic:
    """Adds up what gateways report."""

    def __init__(self) -> None:
        # By gateway: the instance whose counts these are, and its latest, by deployment.
        self._latest: dict[str, tuple[str, dict[str, DeploymentCounts]]] = {}
        self._totals: dict[str, _Row] = {}
        self._slices: dict[str, deque[_Slice]] = {}
        self.slo = SloBook()

    def observe(
        self, gateway_id: str, instance: str, counts: Sequence[DeploymentCounts], now: datetime
    ) -> None:
        """A gateway's report; another instance of it counts from 0 again."""
        self.slo.observe(gateway_id, instance, counts, now)
        known = self._latest.get(gateway_id)
        before = known[1] if known and known[0] == instance else {}
        latest = {each.deployment: each for each in counts}
        for name, each in latest.items():
            earlier, total = before.get(name), _counts_of(each)
            new = _since(_counts_of(earlier) if earlier else _NOTHING, total)
            if new == _NOTHING and name in self._totals:
                continue
            self._totals[name] = _sum(self._totals.get(name, _NOTHING), new)
            if known is not None:  # else it may have counted for days
                self._note(name, new, now)
        self._latest[gateway_id] = (instance, latest)

    def keep(self, gateways: Collection[str], deployments: Collection[str]) -> None:
        """Forgets gateways and deployments that are no more."""
        self.slo.keep(gateways, deployments)
        for gone in self._latest.keys() - set(gateways):
            del self._latest[gone]
        for name in self._totals.keys() - set(deployments):
            self._totals.pop(name)
            self._slices.pop(name, None)

    def totals(self) -> dict[str, Totals]:
        """Counts since this head started, by deployment."""
        return {name: Totals(*row) for name, row in tuple(self._totals.items())}

    def of(self, view: ClusterView, name: str, now: datetime) -> DeploymentTraffic:
        """One deployment, as the gateways that report see it."""
        reporting = (g.id for g in view.gateways.values() if g.reporting and g.id in self._latest)
        told = (self._latest[gateway_id][1].get(name) for gateway_id in reporting)
        counts = [each for each in told if each is not None]
        deployment = view.deployments.get(DeploymentName(name))
        slo = deployment.spec.objectives.slo if deployment else Slo()
        last_minute, total = _NOTHING, Totals(*self._totals.get(name, _NOTHING))
        for each in self._slices.get(name, ()):
            if now - each.begin < MINUTE:
                last_minute = _sum(last_minute, each.counts)
        return DeploymentTraffic(
            queued=sum(c.queued for c in counts),
            in_flight=sum(c.in_flight for c in counts),
            estimated_wait_ms=max((c.estimated_wait_ms for c in counts), default=0),
            last_minute=Totals(*last_minute),
            resumed=total.resumed,
            not_resumed=total.not_resumed,
            burns=self.slo.burns(name, slo, now),
        )

    def _note(self, name: str, new: _Row, now: datetime) -> None:
        if new == _NOTHING:
            return
        slices = self._slices.setdefault(name, deque())
        while slices and now - slices[0].begin >= MINUTE:
            slices.popleft()
        if slices and now - slices[-1].begin < SLICE:
            slices[-1] = _Slice(slices[-1].begin, _sum(slices[-1].counts, new))
        else:
            slices.append(_Slice(now, new))


def _since(earlier: _Row, now: _Row) -> _Row:
    """What came in between; all of it where the counts shrank, for then a process began anew."""
    if earlier == now:
        return _NOTHING
    if now[_REQUESTS] < earlier[_REQUESTS]:
        return now
    return tuple(max(0, each) for each in map(sub, now, earlier))


def _sum(one: _Row, other: _Row) -> _Row:
    return tuple(map(add, one, other))
