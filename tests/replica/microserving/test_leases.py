"""Leases: who may write KV, until when, and how many blocks of it."""

from __future__ import annotations

import pytest

from penstock.replica.microserving.leases import (
    LONGEST_TTL,
    SHORTEST_TTL,
    USUAL_TTL,
    LeaseTable,
)
from penstock.replica.microserving.values import MicroServingError


def _table() -> LeaseTable[str]:
    return LeaseTable(10)


def test_a_lease_stands_until_its_time_is_over() -> None:
    table = _table()
    table.open("a", 4, 2000, "", now=1.0)
    assert (len(table), table.blocks, table.next_end()) == (1, 4, 3.0)
    assert table.expire(2.9) == []
    assert [lease.seq_id for lease in table.expire(3.0)] == ["a"]
    assert (len(table), table.blocks, table.next_end()) == (0, 0, None)


def test_a_lease_that_is_renewed_gets_its_whole_time_again() -> None:
    table = _table()
    table.open("a", 4, 2000, "", now=0.0).renew(1.5)
    assert table.expire(3.4) == []
    assert len(table.expire(3.5)) == 1


@pytest.mark.parametrize(
    ("asked", "seconds"),
    [(0, USUAL_TTL), (1, SHORTEST_TTL), (2500, 2.5), (1 << 31, LONGEST_TTL)],
)
def test_the_time_of_a_lease_has_bounds(asked: int, seconds: float) -> None:
    assert _table().open("a", 1, asked, "", now=0.0).until == seconds


def test_no_more_is_leased_than_there_may_be() -> None:
    table = _table()
    table.open("a", 6, 1000, "", now=0.0)
    with pytest.raises(MicroServingError) as refused:
        table.open("b", 5, 1000, "", now=0.0)
    assert refused.value.cause == "no_kv_capacity"
    assert table.find("b") is None
    table.end("a")
    assert table.open("b", 10, 1000, "held", now=0.0).held == "held"


def test_ending_what_is_not_there_finds_nothing() -> None:
    assert _table().end("a") is None
