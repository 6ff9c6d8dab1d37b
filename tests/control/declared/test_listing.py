"""Declared fields as people type and read them."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.control.admin.rollout.deployment_settings import SETTINGS
from penstock.control.declared.fields import leaves, named, setting
from penstock.control.declared.listing import key_list, listing, table, typed


@dataclass(frozen=True, slots=True)
class Limits:
    """Some of each kind."""

    share: float = setting("of requests; 0: none", 0.0)
    models: tuple[str, ...] = setting("that it may use", ())
    kind: str = setting("what it is", "big", choices=("big", "small"))


SHARE, MODELS, KIND = leaves(Limits)


def test_lists_have_commas_texts_are_taken_as_they_are_and_the_rest_is_json() -> None:
    assert (typed(SHARE, "0.5"), typed(SHARE, "half")) == (0.5, "half")
    assert typed(MODELS, "a, b,") == ["a", "b"]
    assert typed(KIND, "1") == "1"


def test_help_lists_each_field_with_its_default() -> None:
    lines = [line.split() for line in key_list(iter(leaves(Limits)), models="all").splitlines()]
    assert lines[0] == ["share=0", "of", "requests;", "0:", "none"]
    assert lines[1][0] == "models=all"
    assert lines[2] == ["kind=big", "what", "it", "is", "(big,", "small)"]


def test_help_fits_a_terminal_of_80_columns() -> None:
    lines = key_list(named(*SETTINGS)).splitlines()
    assert len(lines) > 40
    assert max(map(len, lines)) <= 80


def test_a_verbs_docstring_gets_the_list_where_it_names_it() -> None:
    @listing(keys="a=1")
    def verb() -> None:
        """Keys: {keys}"""

    assert verb.__doc__ == "Keys: a=1"


def test_the_docs_have_a_row_for_each_field() -> None:
    assert table(iter(leaves(Limits))).splitlines()[2:] == [
        "| `share` | 0 | of requests; 0: none |",
        "| `models` | none | that it may use |",
        "| `kind` | `big` | what it is (big, small) |",
    ]
