"""Slows down whoever tries tokens: wrong ones are counted by the address that they come from.

A right token is never held back, also from an address with many wrong ones: somebody else may be
behind the same proxy. Pure: callers pass now.
"""

from __future__ import annotations

from collections import OrderedDict

MOST_WRONG = 10  # from one address, within PERIOD
PERIOD = 60.0  # seconds
MOST_ADDRESSES = 1000  # the longest quiet one is forgotten for another


class Brake:
    """The wrong tokens of the last while."""

    def __init__(self) -> None:
        self._wrong: OrderedDict[str, tuple[float, int]] = OrderedDict()  # since when, how many

    def wrong(self, address: str, now: float) -> bool:
        """Notes a wrong token; whether there were too many. `now`: seconds of a steady clock."""
        since, count = self._wrong.pop(address, (now, 0))
        if now - since >= PERIOD:
            since, count = now, 0
        self._wrong[address] = (since, count + 1)
        if len(self._wrong) > MOST_ADDRESSES:
            self._wrong.popitem(last=False)
        return count >= MOST_WRONG
