"""What is kept of adapters comes back as it was, through JSON."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.adapters.alias import Alias, Move, Target
from penstock.adapters.promotion import Evidence, PromotionPolicy
from penstock.adapters.version import Digest, VersionState
from penstock.control.state.adapters.registry import Removed, StoredEvidence
from penstock.control.store.adapters import documents
from tests.adapters.examples import MINI, ref, version

whens = st.datetimes(min_value=datetime(2000, 1, 1), timezones=st.just(UTC))
named = st.sampled_from([ref(f"{name}@{i}") for name in ("pirate", "json") for i in range(1, 4)])
targets = st.builds(Target.of, named) | st.builds(
    Target.split, st.dictionaries(named, st.integers(1, 1000), min_size=1)
)
moves = st.builds(Move, targets, whens, st.text(), st.booleans())


def through_json(document: Any) -> Any:
    return json.loads(json.dumps(document))


@given(st.sampled_from(VersionState), st.text())
def test_a_version_comes_back(state: VersionState, content: str) -> None:
    kept = version("pirate@1", content, state, labels={"team": "sea"})
    assert documents.to_version(through_json(documents.from_version(kept))) == kept


@given(st.lists(moves, min_size=1, max_size=5))
def test_an_alias_comes_back_with_its_moves(moves: list[Move]) -> None:
    alias = Alias("chat", "sea", tuple(moves))
    assert documents.to_alias(through_json(documents.from_alias(alias))) == alias
    kept = replace(alias, preload=2, pinned=True)
    assert documents.to_alias(through_json(documents.from_alias(kept))) == kept


@given(st.booleans(), whens, st.none() | named)
def test_evidence_comes_back(passed: bool, at: datetime, against: Any) -> None:
    evidence = Evidence(Digest("a" * 64), MINI, "adapter-regression", passed, at, against, "d" * 64)
    told = StoredEvidence("ev_1", ref("pirate@1"), evidence, report="e" * 64)
    assert documents.to_evidence(through_json(documents.from_evidence(told))) == told


def test_a_removed_name_comes_back() -> None:
    removed = Removed(ref("pirate@1"), Digest("a" * 64))
    assert documents.to_removed(through_json(documents.from_removed(removed))) == removed


@given(st.frozensets(st.sampled_from(VersionState)), st.none() | st.timedeltas(timedelta(0)))
def test_a_policy_comes_back(states: frozenset[VersionState], age: timedelta | None) -> None:
    age = timedelta(seconds=age.total_seconds() // 1) if age is not None else None
    policy = PromotionPolicy(states, "adapter-regression", age)
    assert documents.to_policy(through_json(documents.from_policy(policy))) == policy


def test_a_document_whose_digest_is_anothers_is_refused() -> None:
    kept = documents.from_version(version("pirate@1"))
    with pytest.raises(ValueError, match="pirate@1 has files"):
        documents.to_version({**kept, "digest": "f" * 64})
