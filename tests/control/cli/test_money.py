"""How dollars are written."""

from __future__ import annotations

import pytest

from penstock.control.cli.money import dollars


@pytest.mark.parametrize(
    ("usd", "text"),
    [
        (0, "$0"),
        (1e-9, "$0.000000001"),
        (0.00001, "$0.00001"),
        (0.000123456, "$0.00012"),
        (0.0012, "$0.0012"),
        (0.5, "$0.50"),
        (0.999, "$1.00"),
        (1, "$1"),
        (1.2, "$1.20"),
        (25, "$25"),
        (12345.678, "$12,345.68"),
    ],
)
def test_dollars_are_written_with_as_few_digits_as_tell_them(usd: float, text: str) -> None:
    assert dollars(usd) == text
