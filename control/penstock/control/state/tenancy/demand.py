"""What comes for one tenant at each gateway, that of long ago forgotten. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

# Demand of so long ago counts half.
HALF_LIFE = 15.0  # seconds
# Below which it is nothing.
FORGOTTEN = 1e-4


@dataclass(frozen=True, slots=True)
class Demand:
    """What came for one tenant at one gateway, about per second, that of long ago forgotten."""

    requests: float = 0.0
    rejected: float = 0.0  # by a limit of the tenant
    tokens: float = 0.0
    under_way: float = 0.0  # requests, not per second

    def after(
        self, seconds: float, requests: int, rejected: int, tokens: int, under_way: int = 0
    ) -> Demand:
        """So many seconds later, in which this came, and at whose end so many were under way."""
        kept: float = 0.5 ** (seconds / HALF_LIFE)

        def mixed(old: float, now: float) -> float:
            mean = kept * old + (1 - kept) * now
            return mean if mean > FORGOTTEN else 0.0

        return Demand(
            mixed(self.requests, requests / seconds),
            mixed(self.rejected, rejected / seconds),
            mixed(self.tokens, tokens / seconds),
            mixed(self.under_way, under_way),
        )


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
        sum(demand.under_way for demand in stayed) / count,
    )
    return {
        name: demands.get(name, Demand()) if name in before else mean for name in sorted(members)
    }
