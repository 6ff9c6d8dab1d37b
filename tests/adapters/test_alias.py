"""An alias moves, remembers, and goes back; and never names what cannot answer."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from penstock.adapters.adapter import BaseModelFamily
from penstock.adapters.alias import MOST_MOVES, Alias, BadAlias, Move, Target, check_target
from penstock.adapters.version import VersionState
from tests.adapters.examples import MINI, NOW, known, ref, version

ONE, TWO, THREE = (Target.of(ref(f"pirate@{i}")) for i in (1, 2, 3))


def made(*targets: Target) -> Alias:
    first, *others = targets
    alias = Alias("chat", "sea", (Move(first, NOW, "alice"),))
    for i, target in enumerate(others, 1):
        alias = alias.moved(Move(target, NOW + timedelta(hours=i), "bob"))
    return alias


def test_an_alias_names_what_it_was_moved_to_last() -> None:
    alias = made(ONE, TWO)
    assert alias.full_name == "chat:sea"
    assert alias.target == TWO
    assert [(str(move.target), move.by) for move in alias.moves] == [
        ("pirate@1", "alice"),
        ("pirate@2", "bob"),
    ]


def test_a_move_to_where_it_is_changes_nothing() -> None:
    assert len(made(ONE, ONE).moves) == 1


def test_each_undo_goes_one_move_further_back_and_never_to_what_was_taken_back() -> None:
    back = made(ONE, TWO, THREE).undone(NOW, "carol")
    assert (back.target, back.moves[-1].undoes) == (TWO, True)
    first = back.undone(NOW, "carol")
    assert first.target == ONE
    with pytest.raises(BadAlias, match="nothing to undo"):
        first.undone(NOW, "carol")
    onwards = first.moved(Move(THREE, NOW, "carol")).undone(NOW, "carol")
    assert onwards.target == ONE
    assert [str(move.target) for move in onwards.moves].count(str(TWO)) == 2


def test_an_alias_that_never_moved_has_nothing_to_undo() -> None:
    with pytest.raises(BadAlias, match="nothing to undo"):
        made(ONE).undone(NOW, "carol")


def test_the_newest_moves_are_kept() -> None:
    alias = made(*[ONE, TWO] * MOST_MOVES)
    assert len(alias.moves) == MOST_MOVES
    assert alias.undone(NOW, "carol").target == ONE


def test_a_split_says_the_shares_of_its_versions() -> None:
    split = Target.split({ref("pirate@2"): 10, ref("pirate@1"): 90, ref("pirate@3"): 0})
    assert split.refs == (ref("pirate@1"), ref("pirate@2"))
    assert str(split) == "pirate@1 9, pirate@2 1"
    assert split == Target.split({ref("pirate@1"): 9, ref("pirate@2"): 1})
    assert Target.split({ref("pirate@1"): 100, ref("pirate@2"): 0}) == ONE
    assert str(ONE) == "pirate@1"


@pytest.mark.parametrize(
    "weights",
    [
        {},
        {"pirate@1": 0},
        {"pirate@1": False},
        {"pirate@1": 0.0},
        {"pirate@1": -1},
        {"pirate@1": 1001},
        {f"p@{i}": 1 for i in range(9)},
    ],
)
def test_what_is_no_share_is_refused(weights: dict[str, Any]) -> None:
    with pytest.raises(BadAlias):
        Target.split({ref(text): weight for text, weight in weights.items()})


@pytest.mark.parametrize("name", ["", "a b", "pirate@1", "x:y", "a" * 64])
def test_a_name_that_clients_could_not_say_is_refused(name: str) -> None:
    with pytest.raises(BadAlias, match="alias"):
        Alias("chat", name, (Move(ONE, NOW, "alice"),))


def test_a_deployment_that_clients_could_not_say_is_refused() -> None:
    with pytest.raises(BadAlias, match="deployment"):
        Alias("ch:at", "sea", (Move(ONE, NOW, "alice"),))


def test_an_alias_may_name_any_version_but_a_retired_one() -> None:
    for state in VersionState:
        versions = known(version("pirate@1", state=state))
        if state == VersionState.RETIRED:
            with pytest.raises(
                BadAlias, match="retired: an alias may name candidate, canary, live"
            ):
                check_target(ONE, versions, MINI)
        else:
            check_target(ONE, versions, MINI)


def test_a_version_that_is_not_registered_is_refused_with_those_that_are() -> None:
    with pytest.raises(BadAlias, match="pirate@1 is not registered; of pirate there is 2, 3"):
        check_target(ONE, known(version("pirate@2"), version("pirate@3")), MINI)


def test_a_version_of_another_family_is_refused() -> None:
    other = BaseModelFamily("maxi")
    with pytest.raises(BadAlias, match="made for maxi, the deployment serves mini"):
        check_target(ONE, known(version("pirate@1", family=other)), MINI)


def test_each_version_of_a_split_is_looked_at() -> None:
    split = Target.split({ref("pirate@1"): 1, ref("pirate@2"): 1})
    with pytest.raises(BadAlias, match="pirate@2 is not registered"):
        check_target(split, known(version("pirate@1")), MINI)
