"""What a slice is held to: defaults, a file, words, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.evals.comparison.declared import BadThresholds, from_toml, from_word
from penstock.evals.quantization_regression.thresholds import DEFAULTS, LIMITS, thresholds


def test_a_slices_own_limits_go_before_those_of_all_and_a_word_before_a_file() -> None:
    file = """
max_refusal = 0.04
min_prompts = 30
[slices.safety]
max_refusal = 0.01
max_exact = 0.5
"""
    held = thresholds({**from_toml(file), **from_word("safety.max_refusal=0.02")})
    assert held.of("language").limits == {**DEFAULTS, "max_refusal": 0.04}
    assert held.of("safety").limits == {**DEFAULTS, "max_refusal": 0.02, "max_exact": 0.5}
    assert held.of("safety").min_prompts == 30
    assert held.of("language").declared == {"max_refusal", "min_prompts"}


def test_defaults_are_limits_of_checks_that_there_are_and_none_is_of_a_time() -> None:
    assert set(DEFAULTS) <= {each.key for each in LIMITS}
    assert not {"max_ttft", "max_tpot", "max_total"} & set(DEFAULTS)


@pytest.mark.parametrize(
    ("told", "says"),
    [
        ({"max_tone": 1}, "there is no threshold 'max_tone'"),
        ({"max_error": "much"}, "must be a number"),
        ({"max_perplexity": 5}, "between 0 and 4"),
        ({"slices": 3}, "must be tables"),
        ({"slices": {"safety": 3}}, "must be tables"),
        ({"slices": {"safety": {"max_tone": 1}}}, "there is no threshold 'max_tone'"),
        ({"safety.max_tone": 1.0}, "there is no threshold 'max_tone'"),
    ],
)
def test_what_is_no_threshold_is_refused(told: dict[str, Any], says: str) -> None:
    with pytest.raises(BadThresholds, match=says):
        thresholds(told)
