"""Adapters come to where they are wanted, and nobody loses one that is in use."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from penstock.adapters.adapter import AdapterRef
from penstock.adapters.placement import Desired, Holder, Placement, Plan, Urgency, place
from tests.adapters.examples import ref, refs

ALL = refs(f"{name}@1" for name in "abcdef")
A, B, C, D = (ref(f"{name}@1") for name in "abcd")


def holder(
    replica: str, holds: str = "", slots: int = 2, in_use: str = "", **more: object
) -> Holder:
    holder = Holder(replica, slots, refs(f"{n}@1" for n in holds), refs(f"{n}@1" for n in in_use))
    return replace(holder, **more)  # type: ignore[arg-type]


def test_an_adapter_for_all_is_loaded_where_it_is_missing() -> None:
    done = place([Desired(A)], ALL, [holder("r1", "a"), holder("r2")])
    assert done == Placement({"r2": Plan(load=(A,))}, {})


def test_an_adapter_for_some_goes_to_the_emptiest() -> None:
    done = place([Desired(A, 1)], ALL, [holder("r1", "b"), holder("r2")])
    assert done.plans == {"r2": Plan(load=(A,))}


def test_what_stands_where_it_is_wanted_is_left_alone() -> None:
    assert place([Desired(A, 1)], ALL, [holder("r1", "ab"), holder("r2")]).plans == {}


def test_the_guest_that_was_used_longest_ago_makes_room() -> None:
    full = holder("r1", "bc", last_used={B: 5.0, C: 3.0})
    assert place([Desired(A)], ALL, [full]).plans == {"r1": Plan(load=(A,), unload=(C,))}


def test_one_in_use_does_not_make_room() -> None:
    full = holder("r1", "bc", in_use="c", last_used={B: 5.0, C: 3.0})
    assert place([Desired(A)], ALL, [full]).plans == {"r1": Plan(load=(A,), unload=(B,))}
    assert place([Desired(A)], ALL, [replace(full, in_use=refs(["b@1", "c@1"]))]) == Placement(
        {}, {A: 1}
    )


def test_a_pinned_one_takes_the_place_of_a_preloaded_one_after_all_guests() -> None:
    desired = [Desired(B), Desired(A, urgency=Urgency.PINNED)]
    assert place(desired, ALL, [holder("r1", "bc")]).plans == {"r1": Plan((A,), (C,))}
    done = place(desired, ALL, [holder("r1", "b", slots=1)])
    assert done == Placement({"r1": Plan((A,), (B,))}, {B: 1})


def test_a_preloaded_one_is_not_moved_where_a_guest_can_go() -> None:
    desired = [Desired(A, urgency=Urgency.PINNED), Desired(B, 1)]
    assert place(desired, ALL, [holder("r1", "bc"), holder("r2")]).plans == {
        "r1": Plan((A,), (C,)),
        "r2": Plan((A,)),
    }


def test_whoever_is_asked_for_does_not_take_the_place_of_one_that_is_wanted() -> None:
    desired = [Desired(A, urgency=Urgency.PINNED), Desired(B), Desired(C, 1, Urgency.ASKED)]
    assert place(desired, ALL, [holder("r1", "ab")]) == Placement({}, {C: 1})


def test_of_those_asked_for_the_first_gets_the_only_slot() -> None:
    desired = [Desired(C, 1, Urgency.ASKED), Desired(B, 1, Urgency.ASKED)]
    assert place(desired, ALL, [holder("r1", slots=1)]) == Placement({"r1": Plan((C,))}, {B: 1})


def test_where_a_load_failed_another_replica_is_tried() -> None:
    failed = holder("r1", failed=frozenset({A}))
    want = Desired(A, 1, Urgency.ASKED)
    assert place([want], ALL, [failed, holder("r2", "bc")]).plans == {"r2": Plan((A,), (B,))}
    assert place([want], ALL, [failed]).unplaced == {A: 1}


def test_what_is_served_no_more_leaves_as_soon_as_nobody_uses_it() -> None:
    used = holder("r1", "ab", in_use="a")
    assert place([], ALL - {A, B}, [used]).plans == {"r1": Plan(unload=(B,))}
    assert place([], ALL - {A, B}, [replace(used, in_use=frozenset())]).plans == {
        "r1": Plan(unload=(A, B))
    }


def test_what_is_not_served_is_never_loaded() -> None:
    assert place([Desired(A)], ALL - {A}, [holder("r1")]) == Placement({}, {A: 1})


def test_of_several_full_replicas_the_one_whose_guest_is_missed_least_makes_room() -> None:
    busy, idle = (
        holder("r1", "b", 1, last_used={B: 100.0}),
        holder("r2", "c", 1, last_used={C: 1.0}),
    )
    asked = [Desired(A, 1, Urgency.ASKED)]
    assert place(asked, ALL, [busy, idle]).plans == {"r2": Plan((A,), (C,))}


def test_a_pinned_one_leaves_a_preloaded_one_alone_where_a_guest_sits_next_door() -> None:
    desired = [Desired(A, 1, Urgency.PINNED), Desired(B, 1)]
    full = [holder("r1", "b", 1), holder("r2", "c", 1)]
    assert place(desired, ALL, full).plans == {"r2": Plan((A,), (C,))}


def test_two_requests_for_the_same_adapter_are_one_load() -> None:
    asked = [Desired(A, 1, Urgency.ASKED)] * 2
    assert place(asked, ALL, [holder("r1"), holder("r2")]) == Placement({"r1": Plan((A,))}, {})
    assert place([Desired(A), Desired(A, 1)], ALL, [holder("r1")]).unplaced == {}


def test_a_replica_that_holds_more_than_its_slots_lets_guests_go() -> None:
    over = holder("r1", "abc", in_use="a")
    assert place([Desired(D, 1)], ALL, [over]).plans == {"r1": Plan((D,), (B, C))}
    assert place([], ALL, [over]).plans == {"r1": Plan(unload=(B,))}


def test_what_has_no_replica_to_be_on_is_unplaced() -> None:
    assert place([Desired(A, 3)], ALL, []).unplaced == {A: 3}
    assert place([Desired(A, 3)], ALL, [holder("r1")]).unplaced == {A: 2}


def test_a_guest_that_is_asked_for_often_stays_beside_the_idle() -> None:
    holders = [holder("r1", "ab"), holder("r2", "cd")]
    loads = 0
    for now, name in enumerate("abe" * 20):
        wanted = ref(f"{name}@1")
        done = place([Desired(wanted, 1, Urgency.ASKED)], ALL, holders)
        loads += sum(len(plan.load) for plan in done.plans.values())
        holders = [
            replace(after, last_used={**after.last_used, wanted: now + 1.0})
            for after in carried_out(holders, done)
        ]
    assert loads == 1


adapters = st.sampled_from(sorted(ALL))
desired_lists = st.lists(
    st.builds(Desired, adapters, st.none() | st.integers(0, 3), st.sampled_from(Urgency)),
    max_size=6,
)


@st.composite
def holders(draw: st.DrawFn) -> list[Holder]:
    found = []
    for i in range(draw(st.integers(0, 4))):
        slots = draw(st.integers(0, 3))
        holds = draw(st.frozensets(adapters, max_size=slots))
        in_use = frozenset(r for r in holds if draw(st.booleans()))
        used = {r: draw(st.floats(0, 9)) for r in holds}
        failed = draw(st.frozensets(adapters, max_size=2)) - holds
        found.append(Holder(f"r{i}", slots, holds, in_use, used, failed))
    return found


def carried_out(holders: list[Holder], done: Placement) -> list[Holder]:
    after = []
    for holder in holders:
        plan = done.plans.get(holder.replica, Plan())
        after.append(replace(holder, holds=(holder.holds - set(plan.unload)) | set(plan.load)))
    return after


@given(desired_lists, st.frozensets(adapters), holders())
def test_slots_suffice_users_keep_theirs_and_a_plan_that_is_carried_out_is_the_last(
    desired: list[Desired], served: frozenset[AdapterRef], holders: list[Holder]
) -> None:
    done = place(desired, served, holders)
    after = carried_out(holders, done)
    for before, now in zip(holders, after, strict=True):
        assert len(now.holds) <= now.slots
        assert before.in_use <= now.holds
        assert not (now.holds - before.holds) & before.failed
        assert now.holds - before.holds <= served
        assert now.holds <= served | before.in_use
    again = place(desired, served, after)
    assert again == Placement({}, done.unplaced)


@given(desired_lists.filter(lambda all_: len({d.ref for d in all_}) == len(all_)), holders())
def test_one_desired_is_unplaced_only_where_nothing_less_urgent_could_go(
    desired: list[Desired], holders: list[Holder]
) -> None:
    done = place(desired, ALL, holders)
    after = carried_out(holders, done)
    urgent = [want for want in desired if want.urgency == Urgency.PINNED]
    for want in urgent:
        if want.ref not in done.unplaced:
            continue
        for now in after:
            guests = now.holds - now.in_use - {other.ref for other in urgent}
            can = want.ref not in now.holds | now.failed and len(now.holds) <= now.slots
            assert not (can and (guests or len(now.holds) < now.slots))
