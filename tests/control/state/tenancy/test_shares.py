"""Shares of a tenant's limits: always the whole, never nothing, and told anew only for a reason."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from hypothesis import example, given
from hypothesis import strategies as st

from penstock.control.state.tenancy.demand import Demand, joined
from penstock.control.state.tenancy.dividing import FLOOR, WHOLE, divided, equal_part
from penstock.control.state.tenancy.shares import Shares, equal, share_of
from penstock.control.state.tenancy.shares import next_shares as parts_of

NAMES = st.integers(1, 60).map(lambda count: [f"gw-{n}" for n in range(count)])
DEMANDS = st.builds(Demand, *[st.floats(0, 1e6)] * 3)
FAR = Demand(requests=90.0, tokens=9000.0)
NEAR = Demand(requests=10.0, tokens=1000.0)


def next_shares(
    told: Shares, members: Collection[str], demands: Mapping[str, Mapping[str, Demand]]
) -> Shares:
    """What gateways go by after one more telling; `told` itself where it says the same."""
    new = Shares(tuple(sorted(members)), parts_of(told, members, demands))
    return told if new == told else new


@st.composite
def demanded(draw: st.DrawFn) -> dict[str, Demand]:
    return {name: draw(DEMANDS) for name in draw(NAMES)}


@given(demanded())
@example({"gw-0": Demand(requests=5e-324, rejected=1.0, tokens=1.0), "gw-1": Demand(rejected=1.0)})
def test_shares_are_the_whole_and_none_is_below_its_floor(demands: dict[str, Demand]) -> None:
    shares = next_shares(Shares(), demands, {"acme": demands})
    told = [share_of(shares, name, "acme") for name in demands]
    assert sum(told) == WHOLE
    assert min(told) >= int(FLOOR * WHOLE / len(demands))


@given(st.dictionaries(st.text(max_size=5), st.floats(0, 1e9), min_size=1, max_size=300))
def test_whatever_the_weights_the_sum_is_the_whole(weights: dict[str, float]) -> None:
    assert sum(divided(weights).values()) == WHOLE


@given(NAMES, st.integers(1, 2**31 - 1))
def test_equal_parts_are_those_of_equal_weights(names: list[str], whole: int) -> None:
    parts = divided(dict.fromkeys(names, 1.0), whole)
    assert parts == {name: equal_part(sorted(names), name, whole) for name in names}


@given(demanded(), demanded())
def test_demand_that_stays_the_same_is_soon_told_no_more(
    before: dict[str, Demand], now: dict[str, Demand]
) -> None:
    told = next_shares(Shares(), before, {"acme": before})
    for _ in range(10):
        told = next_shares(told, now, {"acme": now})
    assert next_shares(told, now, {"acme": now}) is told


def test_one_gateway_alone_has_all_whatever_comes() -> None:
    for demands in ({}, {"acme": {"gw-1": FAR}}):
        assert share_of(next_shares(Shares(), ["gw-1"], demands), "gw-1", "acme") == WHOLE
    assert share_of(Shares(), "gw-1", "acme") == WHOLE


def test_who_is_asked_for_more_may_give_more() -> None:
    shares = next_shares(Shares(), ["a", "b"], {"acme": {"a": FAR, "b": NEAR}})
    assert (share_of(shares, "a", "acme"), share_of(shares, "b", "acme")) == (800, 200)
    assert share_of(shares, "a", "other") == share_of(shares, "b", "other") == 500


def test_what_was_refused_counts_as_much_as_what_was_served_costs() -> None:
    refused = Demand(requests=10.0, rejected=80.0, tokens=1000.0)
    shares = next_shares(Shares(), ["a", "b"], {"acme": {"a": refused, "b": NEAR}})
    assert share_of(shares, "a", "acme") == 800


def test_small_moves_are_not_told() -> None:
    told = next_shares(Shares(), ["a", "b"], {"acme": {"a": FAR, "b": NEAR}})
    a_little_more = Demand(requests=12.0, tokens=1200.0)
    assert next_shares(told, ["a", "b"], {"acme": {"a": FAR, "b": a_little_more}}) is told
    much_more = Demand(requests=50.0, tokens=5000.0)
    assert next_shares(told, ["a", "b"], {"acme": {"a": FAR, "b": much_more}}) is not told


def test_a_tenant_of_whom_nothing_comes_keeps_its_shares() -> None:
    told = next_shares(Shares(), ["a", "b", "c"], {"acme": {"a": FAR, "b": NEAR}})
    assert next_shares(told, ["a", "b", "c"], {}) is told
    assert next_shares(told, ["a", "b", "c"], {"acme": {"c": Demand(tokens=0.01)}}) is told


def test_a_gateway_that_nobody_counts_yet_begins_with_the_least() -> None:
    assert share_of(Shares(("a",)), "new", "acme") == FLOOR * WHOLE / 2


def test_a_new_gateway_is_given_a_mean_share_and_one_that_went_gives_its_back() -> None:
    demands = joined({"a": FAR, "gone": NEAR}, ["a", "gone"], ["a", "new"])
    assert demands == {"a": FAR, "new": FAR}
    shares = next_shares(Shares(("a", "gone")), ["a", "new"], {"acme": demands})
    assert shares == Shares(("a", "new"))
    assert share_of(shares, "new", "acme") == equal(["a", "new"])["new"] == 500


@given(st.lists(st.integers(0, 1000), min_size=1, max_size=50))
def test_demand_follows_what_comes_and_is_never_more_than_the_most_of_it(
    counts: list[int],
) -> None:
    demand = Demand()
    for count in counts:
        demand = demand.after(1.0, count, 0, 3 * count)
    assert 0 <= demand.requests <= max(counts) * 1.001
    assert abs(demand.tokens - 3 * demand.requests) < 1e-6 * max(1, demand.tokens)


def test_demand_that_stays_is_known_after_a_minute_and_forgotten_after_another() -> None:
    demand = Demand()
    for _ in range(60):
        demand = demand.after(1.0, 10, 0, 100)
    assert 9 < demand.requests < 10.001
    for _ in range(60):
        demand = demand.after(1.0, 0, 0, 0)
    assert demand.requests < 1
