"""Moments as people say them."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from penstock.control.declared.moments import moment_said
from penstock.control.errors import InvalidInput
from tests.fakes.control_values import NOON


@pytest.mark.parametrize(
    ("text", "back"),
    [("0s", {}), ("90s", {"seconds": 90}), ("30m", {"minutes": 30}), ("2h", {"hours": 2}),
     ("7d", {"days": 7}), ("999999d", {"days": 366})],
)  # fmt: skip
def test_how_long_ago_is_a_moment(text: str, back: dict[str, int]) -> None:
    assert moment_said("since", text, NOON) == NOON - timedelta(**back)


@pytest.mark.parametrize("text", ["2026-01-31T12:00:00Z", "2026-01-31T13:00:00.5+01:00"])
def test_a_time_with_its_zone_is_a_moment(text: str) -> None:
    assert moment_said("since", text, NOON) == datetime.fromisoformat(text)


@pytest.mark.parametrize(
    "text", ["", "noon", "30", "m", "1.5h", "-2h", "٣m", "2026-01-31T12:00:00"]
)
def test_anything_else_is_refused_by_its_name(text: str) -> None:
    with pytest.raises(InvalidInput, match=r"--since is '.*': it must be RFC 3339, such as"):
        moment_said("--since", text, NOON)
