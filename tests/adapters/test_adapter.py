"""Adapter names survive printing and parsing, and nothing else passes for one."""

from __future__ import annotations

import pytest

from penstock.adapters.adapter import AdapterRef, BadAdapterRef


@pytest.mark.parametrize("text", ["pirate@1", "json@2024-01-02", "a.b_c-D@v1.2"])
def test_a_ref_prints_as_it_was_parsed(text: str) -> None:
    assert str(AdapterRef.parse(text)) == text


def test_a_ref_knows_its_name_and_version() -> None:
    assert AdapterRef.parse("pirate@1") == AdapterRef("pirate", "1")


@pytest.mark.parametrize(
    "text", ["", "pirate", "pirate@", "@1", "pirate@1@2", "pi rate@1", "../x@1", "a" * 64 + "@1"]
)
def test_what_is_not_name_and_version_is_refused_with_the_text(text: str) -> None:
    with pytest.raises(BadAdapterRef, match="must be name@version") as refused:
        AdapterRef.parse(text)
    assert repr(text) in str(refused.value) or text in {"", "pirate"}


def test_a_version_that_is_a_number_is_refused_or_it_would_be_another_than_its_text() -> None:
    with pytest.raises(BadAdapterRef):
        AdapterRef("pirate", 2)  # type: ignore[arg-type]


def test_refs_sort_by_name_then_version() -> None:
    refs = [AdapterRef.parse(text) for text in ("b@1", "a@2", "a@1")]
    assert [str(ref) for ref in sorted(refs)] == ["a@1", "a@2", "b@1"]
