"""A whole divided among gateways. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

WHOLE = 1000  # permille
# What every gateway has at least, of an equal part: the next request of a tenant may come there.
FLOOR = 0.25


def divided(weights: Mapping[str, float], whole: int = WHOLE) -> dict[str, int]:
    """Parts of the whole by weight, none below the floor nor 1, in sum the whole."""
    return rounded(exactly(weights, whole), whole)


def exactly(weights: Mapping[str, float], whole: int) -> dict[str, float]:
    """What `divided` makes whole numbers of."""
    count, total = len(weights), sum(weights.values())
    floor = floor_of(count, whole) if count else 0.0
    free = max(0.0, whole - floor * count)
    return {
        name: floor + free * (weight / total if total > 0 else 1 / count)
        for name, weight in weights.items()
    }


def rounded(exact: Mapping[str, float], whole: int) -> dict[str, int]:
    """Whole numbers, which sum to the whole where these do: who is cut most is given one more."""
    shares = {name: int(share) for name, share in exact.items()}
    most_cut = sorted(exact, key=lambda name: (shares[name] - exact[name], name))
    for name in most_cut[: max(0, whole - sum(shares.values()))]:
        shares[name] += 1
    return shares


def equal_part(members: Sequence[str], name: str, whole: int) -> int:
    """What `divided` gives one of them, which are sorted, where all weigh the same."""
    count = len(members)
    return max(1, whole // count + (members.index(name) < whole % count))


def floor_of(count: int, whole: int = WHOLE) -> float:
    """What each of so many has at least."""
    return max(1.0, FLOOR * whole / count)
