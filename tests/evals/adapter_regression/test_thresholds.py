"""Thresholds: a file, words, defaults, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.evals.adapter_regression.thresholds import DEFAULTS, thresholds
from penstock.evals.comparison.declared import BadThresholds, from_toml, from_word


def test_what_is_declared_holds_and_the_rest_has_defaults() -> None:
    held = thresholds(
        {**from_toml("max_loss_rate = 0.1\nmin_prompts = 30"), **from_word("min_exact_rate=0.5")}
    )
    assert held.limits == {**DEFAULTS, "max_loss_rate": 0.1, "min_exact_rate": 0.5}
    assert held.declared == {"max_loss_rate", "min_prompts", "min_exact_rate"}
    assert held.min_prompts == 30
    assert held.confidence == 0.95


def test_refusals_are_what_the_file_says() -> None:
    held = thresholds(from_toml('refusal_patterns = ["(?i)no way"]'))
    assert [each.pattern for each in held.refusals] == ["(?i)no way"]


@pytest.mark.parametrize(
    ("told", "says"),
    [
        ({"max_los_rate": 0.1}, "there is no threshold 'max_los_rate'"),
        ({"max_loss_rate": "0.1"}, "must be a number"),
        ({"max_loss_rate": True}, "must be a number"),
        ({"max_loss_rate": 1.5}, "between 0 and 1"),
        ({"max_latency_ratio": float("nan")}, "between 0 and 1000"),
        ({"min_prompts": 3}, "between 10"),
        ({"confidence": 0.5}, "between 0.8"),
        ({"refusal_patterns": "no"}, "a list of regular expressions"),
        ({"refusal_patterns": ["("]}, "no regular expression"),
    ],
)
def test_a_threshold_that_cannot_be_is_refused(told: dict[str, Any], says: str) -> None:
    with pytest.raises(BadThresholds, match=says):
        thresholds(told)


def test_words_and_files_that_cannot_be_read_are_refused() -> None:
    with pytest.raises(BadThresholds, match="is no number"):
        from_word("max_loss_rate=ten")
    with pytest.raises(BadThresholds, match="is no TOML"):
        from_toml("max_loss_rate: 0.1")


def test_a_limit_on_what_no_prompt_checks_is_refused() -> None:
    held = thresholds({"min_schema_validity": 0.9})
    with pytest.raises(BadThresholds, match="no prompt of the dataset has the check json_schema"):
        held.check({"contains"}, references=True)
    held.check({"json_schema"}, references=False)
    with pytest.raises(BadThresholds, match="min_similarity: no prompt"):
        thresholds({"min_similarity": 0.5}).check({"contains"}, references=False)
