"""Judging stops at a list's first wrong entry, and leaves what is right as it is."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel, TypeAdapter, ValidationError

from penstock.replica.vllm.fail_fast import MOST_ENTRIES, validator_of


class Item(BaseModel):
    """An entry, one way."""

    name: str


class Other(BaseModel):
    """An entry, another way."""

    number: int


class Request(BaseModel):
    """A list of two kinds, and a map."""

    items: str | list[Item | Other | list[Item]] = "none"
    bias: dict[str, float] | None = None


def _validator() -> Any:
    return validator_of(TypeAdapter(Request).core_schema)


@pytest.mark.parametrize(
    "fields",
    [
        {"items": "text"},
        {"items": [{"name": "a"}, {"number": 1}, [{"name": "b"}]]},
        {"items": [], "bias": {"1": 0.5}},
        {},
    ],
)
def test_what_is_right_is_what_it_was(fields: dict[str, Any]) -> None:
    assert _validator().validate_python(fields) == Request.model_validate(fields)


def test_the_first_error_is_told_and_no_other_entrys() -> None:
    wrong = {"items": [{"name": "a"}, {}, *[{}] * 100_000]}
    with pytest.raises(ValidationError) as fast:
        _validator().validate_python(wrong)
    with pytest.raises(ValidationError) as slow:
        Request.model_validate({"items": wrong["items"][:2]})
    assert [e["loc"] for e in fast.value.errors()] == [e["loc"] for e in slow.value.errors()]


def test_a_map_of_too_many_entries_is_one_error() -> None:
    bias = dict.fromkeys(map(str, range(MOST_ENTRIES + 1)), "wrong")
    with pytest.raises(ValidationError) as caught:
        _validator().validate_python({"bias": bias})
    assert caught.value.error_count() == 1
    assert str(MOST_ENTRIES) in str(caught.value)
