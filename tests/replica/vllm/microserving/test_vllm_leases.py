"""How long leases last, and what ends them."""

from __future__ import annotations

from penstock.replica.microserving.leases import LONGEST_TTL
from penstock.replica.vllm.microserving.leases import (
    LONGEST,
    QUARANTINE,
    STOPS_WITHIN,
    Lease,
    Leases,
    State,
)


def _leased(leases: Leases, name: str = "a", blocks: int = 10, ttl: float = 10.0) -> Lease:
    lease = Lease(name, None, {}, blocks, 0, blocks * 32, ttl, 0.0, ttl)
    leases.add(lease)
    return lease


def test_a_lease_ends_by_its_time() -> None:
    leases = Leases(30, 1)
    lease = _leased(leases)
    assert leases.next_due() == 10.0
    assert leases.due(9.9) == ([], [], [])
    assert leases.due(10.0) == ([lease], [], [])


def test_what_comes_puts_off_its_end_but_not_for_ever() -> None:
    leases = Leases(30, 1)
    lease = _leased(leases)
    leases.moved(lease, 5.0)
    assert lease.until == 15.0
    leases.moved(lease, LONGEST - 1)
    assert lease.until == LONGEST
    leases.renew(lease, LONGEST, 2.0)
    assert lease.until == LONGEST + 2.0


def test_no_more_blocks_are_leased_than_may_be() -> None:
    leases = Leases(30, 1)
    _leased(leases, "a", 20)
    assert leases.has_room(10)
    assert not leases.has_room(11)


def test_blocks_stay_pinned_until_every_rank_has_stopped() -> None:
    leases = Leases(30, 2)
    lease = _leased(leases)
    assert leases.close(lease, 1.0)
    assert not leases.close(lease, 1.0)
    assert leases.stop(lease, 0, 7) is None
    assert leases.stop(lease, 0, 9) is None
    assert leases.stop(lease, 1, 5) == 5
    assert lease.state is State.CLOSED


def test_a_rank_that_does_not_stop_is_told_again_and_waited_for_a_while() -> None:
    leases = Leases(30, 1)
    lease = _leased(leases)
    leases.close(lease, 1.0)
    assert leases.next_due() == 1.0 + STOPS_WITHIN
    assert leases.due(1.0 + STOPS_WITHIN) == ([], [lease], [])
    assert leases.due(1.1 + STOPS_WITHIN) == ([], [], [])
    _, _, lost = leases.due(1.0 + QUARANTINE)
    assert lost == [lease]


def test_all_ranks_have_to_have_all_of_it() -> None:
    leases = Leases(30, 2)
    lease = _leased(leases)
    assert not leases.finish(lease, 1)
    assert leases.finish(lease, 0)
    leases.close(lease, 1.0)
    assert not leases.finish(lease, 0)


def test_a_lease_whose_request_is_queued_waits_with_it_but_not_for_ever() -> None:
    leases = Leases(30, 1)
    lease = _leased(leases)
    leases.claim(lease, 9.0)
    assert leases.due(10.0) == ([], [], [])
    assert leases.next_due() == 9.0 + LONGEST_TTL
    assert leases.due(9.0 + LONGEST_TTL) == ([lease], [], [])


def test_a_lease_of_the_same_name_that_came_later_is_another() -> None:
    leases = Leases(30, 1)
    first = _leased(leases)
    assert leases.remove(first)
    second = _leased(leases)
    assert not leases.remove(first)
    assert leases.find("a") is second
