"""What histograms of times come to, as people read it. Pure."""

from __future__ import annotations

import math

from penstock.control.state.canary.counts import Bins, begin_us


def quantile_us(bins: Bins, share: float) -> float:
    """What this share of the times lies below: the middle of its bin, in microseconds; 0 where
    nothing was counted. Bins are 9 % wide, so it is right to 5 %."""
    wanted = share * sum(count for _, count in bins)
    seen = 0
    for index, count in bins:
        seen += count
        if seen >= wanted:
            return math.sqrt(begin_us(index) * begin_us(index + 1))
    return 0.0
