"""Requests that may be under way: never more than the limit, whatever gateways hear and when."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.control.state.tenancy.demand import Demand
from penstock.control.state.tenancy.stream_shares import (
    Holdings,
    StreamShares,
    next_stream_shares,
    next_streams,
    streams_of,
)

LIMIT = 20
A_RUNS = Demand(under_way=18.0)
NONE = Demand()


def told(
    limit: int, before: Mapping[str, int], demands: Mapping[str, Demand], **runs: int
) -> Mapping[str, int]:
    """One more telling, where all have heard the last one."""
    return next_streams(limit, before, demands, Holdings(runs))


def test_who_has_more_under_way_or_refuses_more_may_run_more() -> None:
    even = {"a": 10, "b": 10}
    first = told(LIMIT, even, {"a": A_RUNS, "b": NONE}, a=10)
    assert first == {"a": 10, "b": 3}, "what b had is nobody's until it was heard of"
    second = told(LIMIT, first, {"a": A_RUNS, "b": NONE}, a=10)
    assert second == {"a": 17, "b": 3}
    refusing = Demand(under_way=3.0, rejected=20.0)
    assert told(LIMIT, even, {"a": NONE, "b": refusing}, b=3) == {"a": 3, "b": 10}


def test_what_still_runs_at_one_is_not_given_to_another() -> None:
    moved = {"a": NONE, "b": Demand(rejected=50.0)}
    of = {"a": 17, "b": 3}
    for running, given_to_b in ((17, 3), (12, 8), (12, 8), (1, 17), (0, 17)):
        of = dict(told(LIMIT, of, moved, a=running))
        assert (of["a"], of["b"]) == (3, given_to_b)


def test_what_runs_at_one_that_takes_no_more_is_not_given_to_its_successor() -> None:
    alone = {"new": Demand(rejected=5.0)}
    assert told(LIMIT, {}, alone, old=15) == {"new": 5}
    assert told(LIMIT, {"new": 5}, alone, old=30) == {"new": 5}, "nothing is taken for that"
    assert told(LIMIT, {"new": 5}, alone) == {"new": LIMIT}


def test_what_one_may_still_go_by_is_not_given_to_others() -> None:
    moved = {"a": NONE, "b": Demand(rejected=50.0)}
    unobserved = Holdings({}, {"a": 17})
    assert next_streams(LIMIT, {"a": 3, "b": 3}, moved, unobserved) == {"a": 3, "b": 3}
    assert next_streams(LIMIT, {"a": 3, "b": 3}, moved, Holdings()) == {"a": 3, "b": 17}


def test_each_may_run_one_where_there_are_fewer_than_gateways_and_a_third_of_four_is_whole() -> (
    None
):
    three = dict.fromkeys(("a", "b", "c"), NONE)
    assert told(2, {}, three) == {"a": 1, "b": 1, "c": 1}
    assert [streams_of(None, ["a", "b", "c"], name, 4) for name in three] == [2, 1, 1]
    assert [streams_of(None, ["a", "b", "c"], name, 2) for name in three] == [1, 1, 1]


def test_nobody_shares_a_limit_that_there_is_not_or_that_nobody_else_has() -> None:
    assert streams_of(None, ["a", "b"], "a", 0) == 0
    assert streams_of(None, [], "a", 7) == 0
    assert streams_of(None, ["a"], "a", 7) == 7
    assert streams_of(None, ["a"], "new", 7) == 1


def test_another_limit_gives_nobody_more_before_others_were_heard() -> None:
    shares = StreamShares(20, {"a": 16, "b": 4})
    assert [streams_of(shares, ["a", "b"], name, 40) for name in "ab"] == [16, 4]
    assert [streams_of(shares, ["a", "b"], name, 10) for name in "ab"] == [8, 2]
    assert [streams_of(shares, ["a", "b"], name, 1) for name in "ab"] == [1, 1]
    assert [streams_of(shares, ["a", "b"], name, 20) for name in "ab"] == [16, 4]


def test_nothing_moves_while_nobody_comes_near_its_part_or_is_refused() -> None:
    one_has_some = {"a": Demand(under_way=7.0), "b": NONE}
    assert told(LIMIT, {"a": 10, "b": 10}, one_has_some, a=7) == {"a": 10, "b": 10}
    one_has_most = {"a": Demand(under_way=9.0), "b": NONE}
    assert told(LIMIT, {"a": 10, "b": 10}, one_has_most, a=9) == {"a": 10, "b": 3}


def test_what_a_gateway_makes_up_takes_no_more_from_others_than_all_would() -> None:
    demands = {"a": Demand(under_way=2.0**32, rejected=1e9), "b": Demand(rejected=40.0)}
    assert told(LIMIT, {"a": 17, "b": 3}, demands) == {"a": 10, "b": 3}


def test_a_little_more_or_less_under_way_moves_nothing() -> None:
    before = told(LIMIT, {"a": 10, "b": 10}, {"a": Demand(under_way=9), "b": Demand(under_way=9)})
    assert before == {"a": 10, "b": 10}
    near = {"a": Demand(under_way=9.5), "b": Demand(under_way=8.0)}
    assert told(LIMIT, before, near) == before


def test_equal_parts_and_tenants_without_demand_are_not_named() -> None:
    demands = {"busy": {"a": A_RUNS, "b": NONE}}
    limits = {"busy": LIMIT, "idle": LIMIT}

    def after(told: Mapping[str, StreamShares], *before: str) -> dict[str, StreamShares]:
        now = ("a", "b")
        return next_stream_shares(told, before, now, limits, demands, lambda _: Holdings())

    assert after({}, "a", "b").keys() == {"busy"}
    # One that comes is given its part of an idle tenant's once the other has heard of it.
    joins = after({}, "a")
    assert joins["idle"].of == {"a": 10, "b": 1}
    assert after(joins, "a", "b").keys() == {"busy"}


@dataclass
class SimulatedGateway:
    """Takes what it may, hears late, and reports late what it has and by which telling."""

    may_run: int = 1
    runs: int = 0
    observed: int = 0  # tellings
    reported: tuple[int, int] = (0, 0)  # what ran, tellings


@dataclass
class SimulatedHead:
    """Tells parts by reports, as the manager does; and holds what gateways may not have heard."""

    limit: int
    gateways: dict[str, SimulatedGateway] = field(default_factory=dict)
    tellings: list[dict[str, int]] = field(default_factory=list)

    def tell(self, demands: Mapping[str, Demand]) -> None:
        reports = {name: gateway.reported for name, gateway in self.gateways.items()}
        runs = {name: runs for name, (runs, _) in reports.items()}
        unobserved = {
            name: max((told[name] for told in self.tellings[observed - 1 : -1]), default=0)
            for name, (_, observed) in reports.items()
        }
        self.tellings.append(
            next_streams(self.limit, self.tellings[-1], demands, Holdings(runs, unobserved))
        )


@settings(max_examples=300, deadline=None)
@given(st.randoms(use_true_random=False), st.integers(1, 40), st.integers(1, 5))
def test_all_together_never_run_more_than_the_limit_however_late_they_hear_and_report(
    random: Random, limit: int, count: int
) -> None:
    names = [f"gw-{n}" for n in range(count)]
    head = SimulatedHead(limit)
    head.tellings.append({name: streams_of(None, names, name, limit) for name in names})
    head.gateways = {
        name: SimulatedGateway(head.tellings[0][name], observed=1, reported=(0, 1))
        for name in names
    }
    for _ in range(80):
        gateway = random.choice(list(head.gateways.values()))
        match random.choice(["flood", "flood", "ends", "hears", "reports", "tells"]):
            case "flood":
                gateway.runs = max(gateway.runs, gateway.may_run)
            case "ends":
                gateway.runs = random.randint(0, gateway.runs)
            case "hears":
                gateway.observed = random.randint(gateway.observed, len(head.tellings))
                name = next(n for n, g in head.gateways.items() if g is gateway)
                gateway.may_run = head.tellings[gateway.observed - 1][name]
            case "reports":
                gateway.reported = (gateway.runs, gateway.observed)
            case "tells":
                head.tell({n: Demand(under_way=random.uniform(0, 30)) for n in names})
        running = sum(gateway.runs for gateway in head.gateways.values())
        assert running <= max(limit, count)


@given(st.integers(1, 1000), st.lists(st.floats(0, 1e6), min_size=1, max_size=20))
def test_where_nothing_runs_all_of_the_limit_is_given_and_soon_nothing_more_is_told(
    limit: int, under_way: list[float]
) -> None:
    demands = {f"gw-{n}": Demand(under_way=each) for n, each in enumerate(under_way)}
    of: Mapping[str, int] = {}
    for _ in range(2):
        of = next_streams(limit, of, demands, Holdings())
    assert sum(of.values()) == max(limit, len(demands))
    assert min(of.values()) >= max(1, int(0.25 * limit / len(demands)))
    assert next_streams(limit, of, demands, Holdings()) == of
