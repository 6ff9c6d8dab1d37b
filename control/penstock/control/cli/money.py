"""US dollars for people."""

from __future__ import annotations


def dollars(usd: float) -> str:
    """To the cent, and below one to two digits: "$25", "$1.20", "$0.0015"."""
    if usd == int(usd):
        return f"${usd:,.0f}"
    if usd >= 0.01:
        return f"${usd:,.2f}"
    return f"${usd:.2g}" if usd >= 0.0001 else f"${usd:.9f}".rstrip("0")
