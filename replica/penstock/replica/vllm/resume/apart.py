"""Events of an answer that are not written as they come. Pure.

Those that its client has already are swallowed. And where an answer has log probabilities, what one
output of the engine became is written in one piece: a client that has some of it has all, for the
rest could not be made once more, since only the tokens are kept.
"""

from __future__ import annotations


class Apart:
    """Of one call. `had`: events that its client has, and that are still to come once more.
    `gathers`: what comes now is of one output, and not all of it."""

    def __init__(self, had: int = 0) -> None:
        self.had = had
        self.gathers = False
        self._gathered: list[bytes] = []

    def keeps(self, event: bytes) -> bool:
        """Whether the event is not to be written now."""
        if self.had:
            self.had -= 1
            return True
        if self.gathers:
            self._gathered.append(event)
        return self.gathers

    def taken(self) -> tuple[bytes, int]:
        """What was gathered, and how many events that is."""
        gathered, self._gathered = self._gathered, []
        return b"".join(gathered), len(gathered)
