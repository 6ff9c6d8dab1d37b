"""Documents of values, by what their fields declare."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum

import pytest

from penstock.control.declared.codec import Codec
from penstock.control.declared.fields import setting


class Colour(StrEnum):
    """One of two."""

    RED = "red"
    BLUE = "blue"


@dataclass(frozen=True, slots=True)
class Thing:
    """A value."""

    name: str
    at: datetime
    colours: tuple[Colour, ...] = ()
    weight: int = setting("in grams", 5)


THINGS = Codec(Thing)
NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)
DOCUMENT = {"name": "a", "at": "2026-01-02T12:00:00+00:00", "colours": ["blue"], "weight": 7}


def test_a_value_becomes_json_and_comes_back() -> None:
    thing = Thing("a", NOON, (Colour.BLUE,), 7)
    assert THINGS.document(thing) == DOCUMENT
    assert THINGS.value(DOCUMENT) == thing


def test_what_an_older_head_did_not_write_has_its_default_and_what_a_newer_one_wrote_is_left() -> (
    None
):
    written = {"name": "a", "at": "2026-01-02T12:00:00+00:00", "later": 1}
    assert THINGS.value(written) == Thing("a", NOON)


@pytest.mark.parametrize(
    ("changes", "words"),
    [({"name": None}, "name: "), ({"colours": ["green"]}, "colours.0: "), ({"at": "x"}, "at: ")],
)
def test_what_cannot_be_read_is_named_on_one_line(changes: dict[str, object], words: str) -> None:
    with pytest.raises(ValueError, match=words) as refused:
        THINGS.value(DOCUMENT | changes)
    assert "\n" not in str(refused.value)
