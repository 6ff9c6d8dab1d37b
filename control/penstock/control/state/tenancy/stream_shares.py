"""Each gateway's part of the requests that a tenant may have under way. Pure.

What runs cannot be taken back: a gateway that may run less from now on still runs what it runs. So
nobody is given what another has or may still begin, and what was taken from one is given to another
one telling later, when it was heard of. Each may run one, whatever the others do: the next request
of a tenant may come there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from penstock.control.state.tenancy.demand import Demand
from penstock.control.state.tenancy.dividing import equal_part, exactly, rounded

# A part is told anew when the one by demand is off by more than this of itself, this of the limit,
# and what rounding makes.
MOVED_BY, MOVED_OF_LIMIT, ROUNDING = 0.1, 0.01, 0.5
# Requests under way, of which so many say little: far below it parts are equal.
IDLE = 1.0
# Parts stay as they are until one has so much of its own under way, or lately refused so many a
# second (one of the last twenty seconds): before that nobody needs another.
NEAR, REFUSES = 0.8, 0.02


@dataclass(frozen=True, slots=True)
class Holdings:
    """What gateways have of one tenant's requests."""

    # Under way, by gateway, those included that take no more.
    runs: Mapping[str, int] = field(default_factory=dict)
    # The most that a gateway goes by which may not have heard the last telling.
    unobserved: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StreamShares:
    """What gateways were told of one tenant: how many requests each may have under way."""

    limit: int  # of all together
    of: Mapping[str, int]

    def under(self, limit: int) -> Mapping[str, int]:
        """These, where the limit is another by now: none is larger, as what it would have more may
        still run elsewhere."""
        if limit >= self.limit:
            return self.of
        return {name: max(1, part * limit // self.limit) for name, part in self.of.items()}


def streams_of(told: StreamShares | None, members: Sequence[str], gateway: str, limit: int) -> int:
    """How many of `limit` a gateway may run, of members that are sorted; one that nobody counts yet
    begins with one. 0: there is no limit, or nobody shares it."""
    if not limit or not members:
        return 0
    if gateway not in members:
        return 1
    return told.under(limit)[gateway] if told else equal_part(members, gateway, limit)


def next_stream_shares(
    told: Mapping[str, StreamShares],
    before: Sequence[str],
    members: Sequence[str],
    limits: Mapping[str, int],
    demands: Mapping[str, Mapping[str, Demand]],
    holdings: Callable[[str], Holdings],
) -> dict[str, StreamShares]:
    """What is to be told, by tenant, without equal parts: of limits by tenant, of the members
    before and now, both sorted, of demand by tenant and gateway, and of a tenant's holdings."""
    anew: Iterable[str] = limits if before != members else {*told, *demands} & limits.keys()
    found = {}
    for tenant in anew:
        limit, came = limits[tenant], demands.get(tenant, {})
        was = {name: streams_of(told.get(tenant), before, name, limit) for name in before}
        demand = {name: came.get(name, Demand()) for name in members}
        new = next_streams(limit, was, demand, holdings(tenant))
        if any(part != equal_part(members, name, limit) for name, part in new.items()):
            found[tenant] = StreamShares(limit, new)
    return found


def next_streams(
    limit: int, told: Mapping[str, int], demands: Mapping[str, Demand], holdings: Holdings
) -> dict[str, int]:
    """What each of those that `demands` names may run from now on; `told` where nothing moved.

    With what others run, and may begin until they hear of it, that is no more than the limit; but
    one each is given always.
    """
    target = _target(limit, told, demands)
    held = {
        name: max(told.get(name, 0), holdings.runs.get(name, 0), holdings.unobserved.get(name, 0))
        for name in target
    }
    others = sum(
        max(runs, holdings.unobserved.get(name, 0))
        for name, runs in holdings.runs.items()
        if name not in target
    )
    free = max(0, limit - others - sum(held.values()))
    wanting = {name: float(want - held[name]) for name, want in target.items() if want > held[name]}
    gains = _split(min(free, int(sum(wanting.values()))), wanting)
    return {
        name: max(1, min(want, held[name]) + gains.get(name, 0)) for name, want in target.items()
    }


def _target(
    limit: int, told: Mapping[str, int], demands: Mapping[str, Demand]
) -> Mapping[str, int]:
    """By demand, whatever runs elsewhere; as told where all is given and nobody needs more, or what
    is told is near it."""
    exact = exactly(_weights(limit, demands), limit)
    if told.keys() == demands.keys() and sum(told.values()) >= limit:
        if not any(_needs_more(told[name], demand) for name, demand in demands.items()):
            return told
        moved = any(
            abs(part - told[name]) > MOVED_BY * told[name] + MOVED_OF_LIMIT * limit + ROUNDING
            for name, part in exact.items()
        )
        if not moved:
            return told
    return rounded(exact, limit)


def _needs_more(part: int, demand: Demand) -> bool:
    return demand.under_way > NEAR * part or demand.rejected > REFUSES


def _weights(limit: int, demands: Mapping[str, Demand]) -> dict[str, float]:
    """Requests that would be under way without a limit: those that are, and those that were refused
    within a second, after which a refused client asks again; whatever a gateway says, none has use
    for more than all."""
    little = IDLE / max(1, len(demands))
    return {
        name: min(demand.under_way + demand.rejected, limit) + little
        for name, demand in demands.items()
    }


def _split(count: int, weights: Mapping[str, float]) -> dict[str, int]:
    """So many by weight, none below nothing."""
    total = sum(weights.values())
    if not count or total <= 0:
        return {}
    return rounded({name: count * weight / total for name, weight in weights.items()}, count)
