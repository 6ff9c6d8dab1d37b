"""`name@version` means the same bytes for ever, whatever comes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.adapters.adapter import AdapterRef
from penstock.adapters.alias import Alias, Move, Target
from penstock.adapters.registry import (
    InUse,
    Taken,
    check_unnamed,
    collectable,
    register,
    retire,
)
from penstock.adapters.version import AdapterVersion, BadMove, Digest, VersionState
from tests.adapters.examples import NOW, known, ref, version


def alias(name: str, *targets: str) -> Alias:
    return Alias("chat", name, tuple(Move(Target.of(ref(t)), NOW, "alice") for t in targets))


def test_a_new_version_is_registered() -> None:
    done = register(known(version("pirate@1")), (), version("pirate@2", "others"))
    assert done.is_new
    assert done.version.ref == ref("pirate@2")


def test_the_same_bytes_under_the_same_name_are_nothing_new_and_the_first_manifest_stays() -> None:
    first = version("pirate@1", state=VersionState.LIVE, labels={"team": "sea"})
    again = register(known(first), (), version("pirate@1", labels={"team": "land"}))
    assert not again.is_new
    assert again.version is first


@pytest.mark.parametrize("name", ["pirate@2", "corsair@1"])
def test_the_same_bytes_under_another_name_are_a_version_of_its_own(name: str) -> None:
    assert register(known(version("pirate@1")), (), version(name)).is_new


def test_other_bytes_under_a_taken_version_are_refused() -> None:
    with pytest.raises(Taken, match="pirate@1 is taken by other bytes"):
        register(known(version("pirate@1")), (), version("pirate@1", "others"))


@pytest.mark.parametrize("content", ["some weights", "others"])
def test_a_version_that_was_removed_is_never_given_again(content: str) -> None:
    with pytest.raises(Taken, match="never given again"):
        register({}, {ref("pirate@1")}, version("pirate@1", content))


def test_a_version_that_an_alias_names_is_neither_retired_nor_removed() -> None:
    named = version("pirate@1", state=VersionState.LIVE)
    aliases = [
        alias("calm", "json@1"),
        alias("sea", "pirate@1"),
        alias("old", "pirate@1", "json@1"),
    ]
    with pytest.raises(InUse, match="chat:sea names it"):
        retire(named, aliases)
    with pytest.raises(InUse, match="cannot be removed"):
        check_unnamed(named.ref, aliases, "removed")


def test_a_version_that_aliases_have_left_is_retired_once() -> None:
    gone = retire(version("pirate@1"), [alias("old", "pirate@1", "json@1")])
    assert gone.state == VersionState.RETIRED
    with pytest.raises(BadMove):
        retire(gone, [])


def test_bytes_are_collected_when_no_version_and_nobody_who_runs_needs_them() -> None:
    kept, shared, held, gone = (Digest(c * 64) for c in "abcd")
    versions = [version("pirate@1"), version("pirate@2")]
    needed = versions[0].manifest.digest
    assert collectable([needed, held, gone], versions, {held}) == {gone}
    assert collectable([kept, shared], [], ()) == {kept, shared}


names = st.sampled_from(["pirate@1", "pirate@2", "json@1"])
steps = st.lists(st.tuples(st.sampled_from(["add", "remove"]), names, st.sampled_from("xyz")))


@given(steps)
def test_no_name_ever_means_two_contents(steps: list[tuple[str, str, str]]) -> None:
    versions: dict[AdapterRef, AdapterVersion] = {}
    removed: set[AdapterRef] = set()
    meant: dict[AdapterRef, Digest] = {}
    for step, name, content in steps:
        if step == "remove":
            if versions.pop(ref(name), None):
                removed.add(ref(name))
            continue
        try:
            done = register(versions, removed, version(name, content))
        except Taken:
            continue
        versions[ref(name)] = done.version
        digest = done.version.manifest.digest
        assert meant.setdefault(ref(name), digest) == digest
