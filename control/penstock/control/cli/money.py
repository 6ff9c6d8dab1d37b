"""US dollars for people."""

from __future__ import annotations


def dollars(usd: float) -> str:
    """As few digits as tell it: "$25", "$1.20", "$0.000042"."""
    if usd >= 1 and usd == int(usd):
        return f"${usd:,.0f}"
    return f"${usd:,.2f}" if usd >= 1 else f"${usd:.2g}" if usd >= 0.0001 else _small(usd)


def _small(usd: float) -> str:
    """What "%g" would write with an exponent."""
    return f"${usd:.9f}".rstrip("0").rstrip(".")
