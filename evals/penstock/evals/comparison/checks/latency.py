"""Times. A shadow runs when there is room, with a cold cache: its times are compared with those of
the primary asked in the same way, never with the client's."""

from __future__ import annotations

from penstock.evals.comparison.checks.between import longer
from penstock.evals.comparison.pair import Answer, Pair


def ttft(pair: Pair) -> float | None:
    """How many times longer the first token takes."""
    return _slower(pair, "ttft")


def tpot(pair: Pair) -> float | None:
    """How many times longer each later token takes."""
    return _slower(pair, "tpot")


def total(pair: Pair) -> float | None:
    """How many times longer the whole answer takes."""
    return _slower(pair, "total")


def _slower(pair: Pair, time: str) -> float | None:
    if pair.again is None or pair.candidate.failed or pair.again.failed:
        return None
    return longer(_time(pair.candidate, time), _time(pair.again, time))


def _time(answer: Answer, name: str) -> float | None:
    found: float | None = getattr(answer, name)
    return found
