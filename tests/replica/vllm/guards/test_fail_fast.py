"""Judging stops at a list's first wrong entry, and leaves what is right as it is."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest
from pydantic import BaseModel, TypeAdapter, ValidationError

from penstock.replica.vllm.guards.fail_fast import MOST_ENTRIES, validator_of


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


def _places(error: ValidationError) -> list[list[str]]:
    """Where errors are; of a branch without what it is made of."""
    return [[str(one).partition("[")[0] for one in told["loc"]] for told in error.errors()]


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
    assert _places(fast.value) == _places(slow.value)


def test_others_run_while_a_long_list_is_judged() -> None:
    many = {"items": [{"name": "a"}] * 300_000}
    thread = threading.Thread(target=_validator().validate_python, args=(many,))
    thread.start()
    turns = 0
    while thread.is_alive():
        time.sleep(0)
        turns += 1
    # Where it held the lock for all of it, there would be one or two.
    assert turns > 10


def test_a_map_of_too_many_entries_is_one_error() -> None:
    bias = dict.fromkeys(map(str, range(MOST_ENTRIES + 1)), "wrong")
    with pytest.raises(ValidationError) as caught:
        _validator().validate_python({"bias": bias})
    assert caught.value.error_count() == 1
    assert str(MOST_ENTRIES) in str(caught.value)
