"""Words that were given up come back neither in names of code nor in names of files.

Prose may have any word: "a heartbeat was heard" says what it says.
"""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# Folder -> words that are no part of a name there, and what is said instead.
GONE = {
    "control/penstock/control": {
        "keeper": "cluster store",
        "wish": "spec",
        "desire": "spec, or to apply one",
        "hear": "observe",
        "heard": "observed",
        "opening": "startup",
        "door": "middleware",
        "doors": "middleware",
        "room": "capacity",
        "decide": "plan",
    },
}
# What users see by its name.
SEEN = {"heard_at", "with_room"}


def words(name: str) -> set[str]:
    """The words of a name, whichever way it is written."""
    return {word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)}


def names(source: str) -> Iterator[str]:
    """Every identifier of a text in Python."""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.NAME:
            yield token.string


@pytest.mark.parametrize("folder", GONE)
def test_no_name_has_a_word_that_is_gone(folder: str) -> None:
    gone, wrong = GONE[folder], set()
    for path in sorted((ROOT / folder).rglob("*.py")):
        for name in {path.stem, *names(path.read_text())} - SEEN:
            for word in words(name) & gone.keys():
                wrong.add(f"{path.relative_to(ROOT)}: {name}: say {gone[word]!r}")
    assert not wrong, "\n".join(sorted(wrong))


@pytest.mark.parametrize("name", ["AliasWish", "_keeper", "KEEPER", "is_heard_by", "hear"])
def test_a_word_is_found_in_every_way_of_writing_names(name: str) -> None:
    assert words(name) & GONE["control/penstock/control"].keys()


@pytest.mark.parametrize("name", ["bedroom", "heartbeat", "shear", "rooms_of"])
def test_a_word_within_another_is_none(name: str) -> None:
    assert not words(name) & GONE["control/penstock/control"].keys()
