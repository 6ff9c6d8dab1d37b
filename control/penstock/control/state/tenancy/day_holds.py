"""What gateways have of limits of a day: used by each, and reserved for requests under way. Pure.

A gateway refuses by what all have used, what the others have reserved, and what it did itself
since. So each is told, with the sums, how much of them is its own: all else of its own came since.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from penstock.control.state.tenancy.usage import DaySums, Holder


class Amount(NamedTuple):
    """What limits of a day count."""

    tokens: int = 0
    nanousd: int = 0  # billionths of a US dollar


class Hold(NamedTuple):
    """What one gateway tells of a key, or of a tenant as a whole (`of.key_id` is empty)."""

    of: Holder
    used: Amount  # since its instance began
    reserved: Amount


class Share(NamedTuple):
    """What one gateway is told of them."""

    used: Amount | None  # by itself, as far as the sums have it; None: not known
    reserved: Amount  # by all others


class GatewayDay(NamedTuple):
    """What one gateway is told."""

    sums: DaySums
    shares: Mapping[Holder, Share]
    stored: int  # the number of its last report whose usage is stored


@dataclass(frozen=True, slots=True)
class GatewayHolds:
    """What a gateway has told."""

    instance: str = ""
    used: Mapping[Holder, Amount] = field(default_factory=dict)
    reserved: Mapping[Holder, Amount] = field(default_factory=dict)
    report: int = 0  # the number of its last report

    def after(self, instance: str, holds: Iterable[Hold], report: int = 0) -> GatewayHolds:
        """With its next report: who is not in it has nothing reserved, and used what it had."""
        told = list(holds)
        before = self.used if instance == self.instance else {}
        return GatewayHolds(
            instance,
            {**before, **{hold.of: hold.used for hold in told}},
            {hold.of: hold.reserved for hold in told if any(hold.reserved)},
            report,
        )


def reserved_by_all(holds: Iterable[GatewayHolds]) -> Mapping[Holder, Amount]:
    """Together."""
    total: dict[Holder, Amount] = {}
    for each in holds:
        for of, amount in each.reserved.items():
            total[of] = _added(amount, total.get(of, Amount()))
    return total


def shares_of(own: GatewayHolds, reserved: Mapping[Holder, Amount]) -> Mapping[Holder, Share]:
    """What a gateway is told, where all together have reserved so much."""
    return {
        of: Share(
            own.used.get(of),
            _less(reserved.get(of, Amount()), own.reserved.get(of, Amount())),
        )
        for of in own.used.keys() | reserved.keys()
    }


def _added(one: Amount, other: Amount) -> Amount:
    return Amount(*(a + b for a, b in zip(one, other, strict=True)))


def _less(one: Amount, other: Amount) -> Amount:
    return Amount(*(max(a - b, 0) for a, b in zip(one, other, strict=True)))
