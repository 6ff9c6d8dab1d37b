"""Each gateway's share of a tenant's limits of a minute: who is asked for more may give more. Pure.

A limit is of all gateways together, and each gateway holds its requests to its own share of it. So
the shares of one tenant sum to the whole. They follow what gateways report with some delay, and are
told anew only when they moved for good: each telling is a snapshot for everybody. Requests under
way are shared by `stream_shares`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from penstock.control.state.tenancy.demand import FORGOTTEN, Demand
from penstock.control.state.tenancy.dividing import FLOOR, WHOLE, divided, floor_of
from penstock.control.state.tenancy.stream_shares import StreamShares

# A share is told anew when it moved by more than this part of itself, and this many permille.
MOVED_BY, MOVED_PERMILLE = 0.1, 10
# Work a second, in tokens, of which so much says little: far below it shares stay as they are.
IDLE = 1.0


@dataclass(frozen=True, slots=True)
class Shares:
    """What gateways were told last: an equal share of each tenant that is not named."""

    members: tuple[str, ...] = ()  # gateways, sorted
    of: Mapping[str, Mapping[str, int]] = field(default_factory=dict)  # tenant, gateway, permille
    streams: Mapping[str, StreamShares] = field(default_factory=dict)  # by tenant

    def without(self, tenant: str) -> Shares:
        """These, when the tenant is no more."""
        return Shares(
            self.members,
            {name: of for name, of in self.of.items() if name != tenant},
            {name: streams for name, streams in self.streams.items() if name != tenant},
        )


def share_of(shares: Shares, gateway: str, tenant: str) -> int:
    """The share in permille. A gateway that nobody counts yet may begin with the least."""
    if gateway in shares.members:
        told = shares.of.get(tenant) or equal(shares.members)
        return told[gateway]
    others = len(shares.members)
    return max(1, int(FLOOR * WHOLE / (others + 1))) if others else WHOLE


def equal(members: Collection[str]) -> dict[str, int]:
    """The same for each, the sum being whole."""
    return divided(dict.fromkeys(members, 1.0))


def work(demands: Mapping[str, Demand]) -> dict[str, float]:
    """What each gateway would do for a tenant without a limit, in tokens a second: what it was
    refused counts as much as what was served costs at any of them."""
    requests = sum(demand.requests for demand in demands.values())
    tokens = sum(demand.tokens for demand in demands.values())
    cost = max(tokens / requests, 1.0) if requests > FORGOTTEN else 1.0
    return {
        gateway: max(demand.tokens, demand.requests) + demand.rejected * cost
        for gateway, demand in demands.items()
    }


def next_shares(
    told: Shares, members: Collection[str], demands: Mapping[str, Mapping[str, Demand]]
) -> Mapping[str, Mapping[str, int]]:
    """What is to be told, of demand by tenant and gateway: by tenant, without equal shares. As told
    where nothing moved for good; where the members are others than before, all anew."""
    present = tuple(sorted(members))
    even, of = equal(present), {}
    for tenant in {*told.of, *demands} if len(present) > 1 else ():
        before = told.of.get(tenant, even) if present == told.members else even
        target = _target(before, demands.get(tenant, {}))
        if present == told.members and not _moved(before, target):
            target = dict(before)
        if target != even:
            of[tenant] = target
    return of


def _target(before: Mapping[str, int], demands: Mapping[str, Demand]) -> dict[str, int]:
    """By demand; where there is hardly any, as before."""
    wanted, floor = work(demands), floor_of(len(before))
    free = max(1.0, WHOLE - floor * len(before))
    return divided(
        {
            name: wanted.get(name, 0.0) + IDLE * max(0.0, share - floor) / free
            for name, share in before.items()
        }
    )


def _moved(before: Mapping[str, int], target: Mapping[str, int]) -> bool:
    return any(
        abs(share - before[name]) > MOVED_BY * before[name] + MOVED_PERMILLE
        for name, share in target.items()
    )
