"""What no answer may hold: the operator's patterns, and those of personal data that ship."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from penstock.evals.comparison.own_patterns import own_pattern
from penstock.evals.comparison.pair import Answer, Pair
from penstock.evals.comparison.personal import CARD, IBAN, PERSONAL, luhn, mod97

SECONDS: Final = 0.05
"""That the operator's patterns may look at one pair: who counts pairs must not fall behind. A text
of 100 KB takes a usual pattern some milliseconds."""
TOO_SLOW: Final = "patterns that took too long"


@dataclass(frozen=True, slots=True)
class Seen:
    """What a pair's answers hold, by the patterns' names."""

    primary: tuple[str, ...] = ()
    candidate: tuple[str, ...] = ()
    late: bool = False  # nobody knows: the operator's patterns ran out of time

    @property
    def named(self) -> Iterator[str]:
        """For counting: whose answer, and what."""
        yield from (f"primary: {name}" for name in self.primary)
        yield from (f"candidate: {name}" for name in self.candidate)
        if self.late:
            yield TOO_SLOW


@dataclass(slots=True)
class Guard:
    """Looks at pairs, each of them once. Without a clock each pattern has all of the time."""

    own: Mapping[str, Any] = field(default_factory=dict)  # the operator's, compiled
    now: Callable[[], float] = lambda: 0.0  # seconds
    _last: tuple[Pair, Seen] | None = None

    @classmethod
    def of(cls, told: Mapping[str, str], now: Callable[[], float] | None = None) -> Guard:
        """Of the operator's patterns by name. Raises `BadCheck`."""
        own = {name: own_pattern(name, each, PERSONAL) for name, each in told.items()}
        return cls(own, now) if now else cls(own)

    def guardrail(self, pair: Pair) -> float | None:
        """Who of the two holds what no answer may; None where nobody can say."""
        if pair.primary.failed or pair.candidate.failed or (seen := self.seen(pair)).late:
            return None
        return float(bool(seen.candidate)) - float(bool(seen.primary))

    def seen(self, pair: Pair) -> Seen:
        """What was found in it."""
        if self._last is None or self._last[0] is not pair:
            self._last = (pair, self._look(pair))
        return self._last[1]

    def _look(self, pair: Pair) -> Seen:
        until = self.now() + SECONDS
        try:
            return Seen(self.hits(pair.primary, until), self.hits(pair.candidate, until))
        except (TimeoutError, MemoryError):
            return Seen(late=True)

    def hits(self, answer: Answer, until: float) -> tuple[str, ...]:
        """The names of patterns that find something in the answer's texts and calls. Raises
        `TimeoutError`."""
        text = "\n".join([answer.text, *(each.arguments for each in answer.calls)])
        shipped = [
            name
            for name, pattern in PERSONAL.items()
            if any(_true(name, each.group()) for each in pattern.finditer(text))
        ]
        own = [name for name, pattern in self.own.items() if self._finds(pattern, text, until)]
        return (*shipped, *own)

    def _finds(self, pattern: Any, text: str, until: float) -> bool:
        if (left := until - self.now()) <= 0:
            raise TimeoutError
        return pattern.search(text, timeout=left) is not None


def _true(name: str, found: str) -> bool:
    """Whether a number's own check digits bear it out, where it has some."""
    if name == CARD:
        return luhn([int(each) for each in found if each.isdigit()])
    if name == IBAN:
        return mod97(found.replace(" ", ""))
    return True
