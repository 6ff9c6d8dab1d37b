"""A gateway that does nothing but count."""

from __future__ import annotations

from penstock.control.state.tenancy.usage import Counts, UsageKey, added


class CountingGateway:
    """Counts for good what it does, as its present instance, and tells it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.lives = 0
        self.counts: dict[UsageKey, Counts] = {}

    def works(self, of: UsageKey, counts: Counts) -> None:
        """A request of this key cost so much."""
        self.counts[of] = added(counts, self.counts.get(of, Counts()))

    def report(self) -> tuple[str, str, list[tuple[UsageKey, Counts]]]:
        """Who says it, as which process, and all that this one has counted."""
        return self.name, f"{self.name}-{self.lives}", list(self.counts.items())

    def restarts(self) -> None:
        """Its next process begins at nothing."""
        self.lives += 1
        self.counts = {}
