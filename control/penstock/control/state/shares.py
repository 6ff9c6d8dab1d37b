"""Each gateway's share of a tenant's limits: who is asked for more may give more. Pure.

A limit is of all gateways together, and each gateway holds its requests to its own share of it. So
the shares of one tenant sum to the whole. They follow what gateways report with some delay, and are
told anew only when they moved for good: each telling is a snapshot for everybody.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

WHOLE = 1000  # permille
# What every gateway has at least, of an equal share: the next request of a tenant may come there.
FLOOR = 0.25
# A share is told anew when it moved by more than this part of itself, and this many permille.
MOVED_BY, MOVED_PERMILLE = 0.1, 10
# Demand of so long ago counts half.
HALF_LIFE = 15.0  # seconds
# Work a second, in tokens, of which so much says little: far below it shares stay as they are.
IDLE = 1.0
# Per second, below which it is nothing.
FORGOTTEN = 1e-4


@dataclass(frozen=True, slots=True)
class Shares:
    """What gateways were told last: an equal share of each tenant that is not named."""

    members: tuple[str, ...] = ()  # gateways, sorted
    of: Mapping[str, Mapping[str, int]] = field(default_factory=dict)  # tenant, gateway, permille

    def without(self, tenant: str) -> Shares:
        """These, when the tenant is no more."""
        return Shares(self.members, {name: of for name, of in self.of.items() if name != tenant})


@dataclass(frozen=True, slots=True)
class Demand:
    """What came for one tenant at one gateway, about per second, that of long ago forgotten."""

    requests: float = 0.0
    rejected: float = 0.0  # by a limit of the tenant
    tokens: float = 0.0

    def after(self, seconds: float, requests: int, rejected: int, tokens: int) -> Demand:
        """So many seconds later, in which this came."""
        kept: float = 0.5 ** (seconds / HALF_LIFE)
        new = (1 - kept) / seconds

        def mixed(old: float, count: int) -> float:
            mean = kept * old + new * count
            return mean if mean > FORGOTTEN else 0.0

        return Demand(
            mixed(self.requests, requests),
            mixed(self.rejected, rejected),
            mixed(self.tokens, tokens),
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


def divided(weights: Mapping[str, float]) -> dict[str, int]:
    """Permille by weight, none below the floor, in sum the whole."""
    if not weights:
        return {}
    count, total = len(weights), sum(weights.values())
    floor = _floor(count)
    free = max(0.0, WHOLE - floor * count)
    exact = {
        name: floor + free * (weight / total if total > 0 else 1 / count)
        for name, weight in weights.items()
    }
    shares = {name: int(share) for name, share in exact.items()}
    most_cut = sorted(exact, key=lambda name: (shares[name] - exact[name], name))
    for name in most_cut[: max(0, WHOLE - sum(shares.values()))]:
        shares[name] += 1
    return shares


def joined(
    demands: Mapping[str, Demand], before: Collection[str], members: Collection[str]
) -> dict[str, Demand]:
    """A tenant's demand with the members that are new, and without those that went: a new one is
    taken to have as much to do as the mean of the others, until it has shown what it has."""
    stayed = [demands.get(name, Demand()) for name in members if name in before]
    count = len(stayed) or 1
    mean = Demand(
        sum(demand.requests for demand in stayed) / count,
        sum(demand.rejected for demand in stayed) / count,
        sum(demand.tokens for demand in stayed) / count,
    )
    return {
        name: demands.get(name, Demand()) if name in before else mean for name in sorted(members)
    }


def next_shares(
    told: Shares, members: Collection[str], demands: Mapping[str, Mapping[str, Demand]]
) -> Shares:
    """What is to be told, of demand by tenant and gateway; `told` itself where nothing moved for
    good. Where the members are others than before, all is told anew."""
    present = tuple(sorted(members))
    even, of = equal(present), {}
    for tenant in {*told.of, *demands} if len(present) > 1 else ():
        before = told.of.get(tenant, even) if present == told.members else even
        target = _target(before, demands.get(tenant, {}))
        if present == told.members and not _moved(before, target):
            target = dict(before)
        if target != even:
            of[tenant] = target
    new = Shares(present, of)
    return told if new == told else new


def _target(before: Mapping[str, int], demands: Mapping[str, Demand]) -> dict[str, int]:
    """By demand; where there is hardly any, as before."""
    wanted, floor = work(demands), _floor(len(before))
    free = max(1.0, WHOLE - floor * len(before))
    return divided(
        {
            name: wanted.get(name, 0.0) + IDLE * max(0.0, share - floor) / free
            for name, share in before.items()
        }
    )


def _floor(members: int) -> float:
    return max(1.0, FLOOR * WHOLE / members)


def _moved(before: Mapping[str, int], target: Mapping[str, int]) -> bool:
    return any(
        abs(share - before[name]) > MOVED_BY * before[name] + MOVED_PERMILLE
        for name, share in target.items()
    )
