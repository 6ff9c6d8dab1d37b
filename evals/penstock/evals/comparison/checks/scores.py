"""How likely each finds what the primary said: one text, so that no luck of sampling is between."""

from __future__ import annotations

import math
from collections.abc import Sequence

from penstock.evals.comparison.checks.between import beyond_self, longer
from penstock.evals.comparison.pair import Answer, Pair

_MOST_LOG = 700.0  # what a float can be the exponential of


def perplexity(pair: Pair) -> float | None:
    """How many times higher the candidate's perplexity of the text is than the primary's own."""
    return longer(perplexity_of(pair.candidate.logprobs), perplexity_of(pair.primary.logprobs))


def logprobs(pair: Pair) -> float | None:
    """How far its tokens' log probabilities lie from the primary's, beyond what the primary's do
    when it is asked for them again. Nats a token; more than one counts as one."""
    return beyond_self(pair, _apart)


def perplexity_of(logprobs: Sequence[float] | None) -> float | None:
    """Among how many tokens it was as if each was drawn."""
    if not logprobs:
        return None
    return math.exp(min(-math.fsum(logprobs) / len(logprobs), _MOST_LOG))


def _apart(one: Answer, other: Answer) -> float | None:
    if not one.logprobs or not other.logprobs or len(one.logprobs) != len(other.logprobs):
        return None
    gaps = (abs(a - b) for a, b in zip(one.logprobs, other.logprobs, strict=True))
    return min(math.fsum(gaps) / len(one.logprobs), 1.0)
