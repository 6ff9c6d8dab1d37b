"""Which replica has which role, through surges, ends and other counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.control.errors import InvalidSpec
from penstock.control.state.cluster import ClusterView
from penstock.control.state.fleet.replica import Replica, ReplicaId, ReplicaState
from penstock.control.state.rollout.deployment import created
from penstock.control.state.rollout.roles import assigned, role_of, with_roles
from penstock.control.state.routing.limits import Sharing
from penstock.control.state.routing.program_setting import Role, Roles
from penstock.control.state.routing.snapshot import routes_of
from tests.fakes.control_values import NOON, SECOND, UID, node, replica, spec

P, D = Role.PREFILL, Role.DECODE
ONE_AND_TWO = Roles(1, 2)


def fleet(words: str) -> list[Replica]:
    """ "a:prefill b:decode (c)": by age; in parentheses those that do not serve."""
    found = []
    for age, word in enumerate(words.split()):
        name, _, role = word.strip("()").partition(":")
        state = ReplicaState.STARTING if "(" in word else ReplicaState.READY
        made = replace(replica(name, state), assigned_at=NOON + age * SECOND, role=role)
        found.append(made)
    return found


def given_to(roles: Roles, replicas: list[Replica]) -> Mapping[str, str]:
    """What each has once roles were given."""
    served = frozenset(r.id for r in replicas if r.state is ReplicaState.READY)
    new = assigned(roles, replicas, served)
    return {r.id: new.get(r.id, r.role) for r in replicas}


@pytest.mark.parametrize(
    ("roles", "before", "after"),
    [
        (ONE_AND_TWO, "a b c", "a:decode b:prefill c:decode"),
        (ONE_AND_TWO, "a:prefill b:decode c:decode", "a:prefill b:decode c:decode"),
        (Roles(1, 1), "a (b)", "a:decode (b:prefill)"),
        # The first that serves generates, also where it was to prefill.
        (Roles(2, 1), "a:prefill (b:prefill) (c:decode)", "a:decode (b:prefill) (c:prefill)"),
        # A surge: the new one is one too many, and takes the place of who drains.
        (
            ONE_AND_TWO,
            "a:prefill b:decode c:decode (n)",
            "a:prefill b:decode c:decode (n:decode)",
        ),
        (ONE_AND_TWO, "b:decode c:decode n:decode", "b:decode c:decode n:prefill"),
        (ONE_AND_TWO, "a:prefill c:decode n:decode", "a:prefill c:decode n:decode"),
        # One that has ended is started again, and keeps its role.
        (ONE_AND_TWO, "(a:prefill) b:decode c:decode", "(a:prefill) b:decode c:decode"),
        # Others are asked for: as few as possible change, the youngest first.
        (Roles(1, 2), "a:prefill b:prefill c:decode", "a:prefill b:decode c:decode"),
        (Roles(2, 1), "a:decode b:decode c:prefill", "a:decode b:prefill c:prefill"),
        (Roles(0, 2), "a:prefill b:decode", "a:decode b:decode"),
        # What a later head knew.
        (Roles(1, 1), "a:draft b:decode", "a:prefill b:decode"),
        # While some are missing, those that are there keep what they do.
        (Roles(2, 2), "b:decode", "b:decode"),
        (Roles(2, 2), "a:prefill b:decode", "a:prefill b:decode"),
    ],
)
def test_who_has_which_role(roles: Roles, before: str, after: str) -> None:
    assert given_to(roles, fleet(before)) == {r.id: r.role for r in fleet(after)}


ROLE = st.sampled_from(["", "prefill", "decode"])


@given(
    st.integers(0, 4),
    st.integers(1, 4),
    st.lists(st.tuples(ROLE, st.booleans()), max_size=9),
)
def test_serving_ones_have_the_roles_that_are_wanted_and_keep_them(
    prefill: int, decode: int, those: list[tuple[str, bool]]
) -> None:
    words = [
        f"r{i}:{role}" if serves else f"(r{i}:{role})" for i, (role, serves) in enumerate(those)
    ]
    replicas, roles = fleet(" ".join(words)), Roles(prefill, decode)
    after = given_to(roles, replicas)
    serving = Counter(after[r.id] for r in replicas if r.state is ReplicaState.READY)
    many = serving.total()
    assert not many or serving[D] >= 1
    if many >= roles.total:
        assert serving[P] >= prefill
        assert serving[D] >= decode
    else:
        assert serving[P] <= prefill
        assert serving[D] <= decode
    again = [replace(r, role=after[r.id]) for r in replicas]
    assert given_to(roles, again) == after, "nothing changes by itself"


def view_of(roles: Roles, replicas: list[Replica]) -> ClusterView:
    asked = replace(spec(replicas=roles.total or len(replicas)), sharing=Sharing(roles=roles))
    view = ClusterView().with_node(node()).with_deployment(created(asked, NOON, uid=UID))
    for each in replicas:
        view = view.with_replica(each)
    return view


def test_gateways_are_told_of_roles_where_there_are_some() -> None:
    view = with_roles(view_of(Roles(1, 1), fleet("a b")))
    assert {r.id: r.role for r in routes_of(view).replicas} == {"a": "decode", "b": "prefill"}
    plain = with_roles(view_of(Roles(), fleet("a:prefill")))
    assert [r.role for r in routes_of(plain).replicas] == [""]
    left = plain.replicas[ReplicaId("a")]
    assert role_of(plain.deployment("mini"), left) == role_of(None, left) == ""


def test_a_drained_replica_has_no_say() -> None:
    leaving = [replace(each, state=ReplicaState.DRAINING) for each in fleet("a:prefill")]
    view = with_roles(view_of(Roles(1, 1), [*leaving, *fleet("b:decode c:decode")]))
    assert view.replicas[ReplicaId("c")].role == P
    assert view.replicas[ReplicaId("a")].role == P


def test_roles_are_as_many_as_replicas_and_one_generates() -> None:
    with pytest.raises(InvalidSpec, match="roles are 1 prefill, 2 decode, and replicas is 2"):
        replace(spec(replicas=2), sharing=Sharing(roles=ONE_AND_TWO))
    with pytest.raises(InvalidSpec, match=r"roles\.decode is 0"):
        Roles(2, 0)
    with pytest.raises(InvalidSpec, match=r"roles\.prefill is -1"):
        Roles(-1, 2)
