"""Lessons: everything but plain talk, and how often each kind comes up."""

from __future__ import annotations

from random import Random

from tools.default_model.grammar.answers_in_json import json_dialogue
from tools.default_model.grammar.dialogues import Dialogue
from tools.default_model.grammar.tools import calls_of, tool_dialogue


def lesson(rng: Random) -> Dialogue:
    """A dialogue with tools, or one in JSON."""
    return tool_dialogue(rng) if rng.random() < 0.72 else json_dialogue(rng)


def call_lesson(rng: Random) -> Dialogue:
    """A dialogue that ends in a call."""
    while True:
        made = tool_dialogue(rng)
        if calls_of(made):
            return made
