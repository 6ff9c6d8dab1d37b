"""What is kept of adapters comes back as it was, through JSON."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.adapters.alias import Alias, Move, Target
from penstock.adapters.promotion import Evidence
from penstock.adapters.version import Digest, VersionState
from penstock.control.store import adapter_documents as documents
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


@given(st.booleans(), whens, st.none() | named)
def test_evidence_comes_back(passed: bool, at: datetime, against: Any) -> None:
    evidence = Evidence(Digest("a" * 64), MINI, "adapter-regression", passed, at, against, "d" * 64)
    assert documents.to_evidence(through_json(documents.from_evidence(evidence))) == evidence


def test_a_document_whose_digest_is_anothers_is_refused() -> None:
    kept = documents.from_version(version("pirate@1"))
    with pytest.raises(ValueError, match="pirate@1 has files"):
        documents.to_version({**kept, "digest": "f" * 64})
