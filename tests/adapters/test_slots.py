"""Who makes room in an engine's slots."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from penstock.adapters.slots import Claim, Occupant, Standing, who_closes, who_goes


def _guest(name: str, last_used: float, *, in_use: bool = False) -> Occupant:
    return Occupant(name, Standing.GUEST, in_use, last_used)


def test_nobody_leaves_while_a_slot_is_free() -> None:
    assert who_goes([_guest("a@1", 1)], 2, Claim.SPARE) == ()


def test_the_least_recently_used_guest_leaves() -> None:
    occupants = [_guest("a@1", 2), _guest("b@1", 1), _guest("c@1", 3)]
    assert who_goes(occupants, 3, Claim.ASKED) == ("b@1",)
    assert who_goes(occupants, 3, Claim.ASKED, coming=2) == ("b@1", "a@1")


def test_guests_leave_before_those_that_are_kept_and_pinned_ones_never() -> None:
    kept = Occupant("kept@1", Standing.KEPT, False, 0)
    pinned = Occupant("pinned@1", Standing.PINNED, False, 0)
    guest = _guest("guest@1", 9)
    assert who_goes([kept, pinned, guest], 3, Claim.ASKED) == ("guest@1",)
    assert who_goes([kept, pinned], 2, Claim.ASKED) == ("kept@1",)
    assert who_goes([pinned], 1, Claim.ASKED) is None


def test_what_is_preloaded_takes_the_slots_of_guests_alone() -> None:
    kept = Occupant("kept@1", Standing.KEPT, False, 0)
    assert who_goes([kept], 1, Claim.PRELOADED) is None
    assert who_goes([_guest("a@1", 0)], 1, Claim.PRELOADED) == ("a@1",)
    assert who_goes([_guest("a@1", 0)], 1, Claim.SPARE) is None


def test_the_guest_that_came_first_is_closed_before_what_is_kept_and_pinned_ones_never() -> None:
    pinned = Occupant("p", Standing.PINNED, True, 0)
    kept = Occupant("k", Standing.KEPT, True, 1)
    guests = [_guest("b", 9, in_use=True), _guest("a", 2, in_use=True)]
    assert who_closes([pinned, kept, *guests], Claim.ASKED) == "b"
    assert who_closes([pinned, kept], Claim.ASKED) == "k"
    assert who_closes([pinned, kept], Claim.PRELOADED) is None
    assert who_closes([pinned], Claim.ASKED) is None


def test_without_slots_nothing_can_come() -> None:
    assert who_goes([], 0, Claim.ASKED) is None


occupants = st.lists(
    st.builds(
        Occupant,
        st.sampled_from([f"{letter}@1" for letter in "abcdef"]),
        st.sampled_from(Standing),
        st.booleans(),
        st.floats(0, 9),
    ),
    unique_by=lambda one: one.name,
)


@given(occupants, st.integers(0, 6), st.sampled_from(Claim), st.integers(1, 3))
def test_what_leaves_suffices_is_no_more_than_needed_and_was_missed_least(
    occupants: list[Occupant], slots: int, claim: Claim, coming: int
) -> None:
    going = who_goes(occupants, slots, claim, coming)
    may_go = {one.name for one in occupants if not one.in_use and one.standing < claim}
    needed = len(occupants) + coming - slots
    if going is None:
        assert needed > len(may_go) or coming > slots
        return
    assert len(going) == max(0, needed)
    assert set(going) <= may_go
    worth = {one.name: (one.standing, one.last_used) for one in occupants}
    stayed = may_go - set(going)
    assert all(worth[gone] <= worth[other] for gone in going for other in stayed)
