"""A judge's verdicts. Judges prefer what they see first: both orders are asked, and where these
disagree it is a tie."""

from __future__ import annotations

from typing import Final

from penstock.evals.comparison.pair import Judged, Pair

_WORSE: Final = {Judged.PRIMARY: 1.0, Judged.NEITHER: 0.0, Judged.CANDIDATE: -1.0}


def judged(pair: Pair) -> float | None:
    """The mean of both orders."""
    return None if pair.judged is None else sum(_WORSE[each] for each in pair.judged) / 2
