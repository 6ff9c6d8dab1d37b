"""What histograms of times come to."""

from __future__ import annotations

import pytest

from penstock.control.state.canary.counts import begin_us
from penstock.control.state.canary.times import quantile_us


def test_of_nothing_there_is_no_quantile() -> None:
    assert quantile_us((), 0.5) == 0


@pytest.mark.parametrize(
    ("share", "bin"), [(0.01, 80), (0.5, 80), (0.51, 100), (0.9, 100), (1, 120)]
)
def test_a_quantile_lies_in_the_bin_that_reaches_its_share(share: float, bin: int) -> None:
    bins = ((80, 50), (100, 40), (120, 10))
    assert begin_us(bin) < quantile_us(bins, share) < begin_us(bin + 1)
