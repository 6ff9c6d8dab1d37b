"""What is taught last."""

from __future__ import annotations

import json
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from tools.default_model.grammar import Heard, Said, refresher
from tools.default_model.grammar.elsewhere import BEYOND, FOREIGN, NEWS


@given(st.integers())
def test_an_answer_says_what_is_not_known_or_is_json(seed: int) -> None:
    heard, said = refresher(Random(seed)).messages
    assert isinstance(heard, Heard)
    assert isinstance(said, Said)
    if said.text() not in (BEYOND, FOREIGN, NEWS):
        values = json.loads(said.text())
        assert all(name in heard.text for name in values)
