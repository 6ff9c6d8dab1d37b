"""Refusals: what the API calls one, and what reads like one."""

from __future__ import annotations

import re
from collections.abc import Sequence

from penstock.evals.comparison.checks.between import harm
from penstock.evals.comparison.pair import Answer, Pair
from penstock.evals.comparison.patterns import found


def refusal(pair: Pair, patterns: Sequence[re.Pattern[str]]) -> float | None:
    """Who of the two refused."""

    def refused(answer: Answer) -> bool:
        return found(answer.text, patterns) or any(
            each.refusal or each.finish_reason == "content_filter" for each in answer.choices
        )

    return harm(pair, refused)
