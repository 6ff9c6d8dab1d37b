"""The pairs so far, as little as has to be kept of them: evidence, counts, and who was counted.

One owner; not for two threads. What `as_dict` gives can be stored, and `Tally.of` goes on from it
as if nothing had been.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from penstock.evals.comparison.betting import FIELDS, Floats, begun, step
from penstock.evals.comparison.pair import Answer, Pair
from penstock.evals.comparison.rules import Rules

BINS: Final = 21
"""Of the differences that were counted, from -1 to 1."""
STRIDE: Final = 1.1
"""The path is kept at so many times more sessions each: a hundred steps to ten thousand."""


@dataclass(frozen=True, slots=True)
class Step:
    """Where the log capitals of all checks stood."""

    counted: int
    worse: tuple[float, ...]
    equal: tuple[float, ...]


class Tally:
    """Counts each session once, by its first comparable pair: eight turns that fail alike are one
    failure. Later pairs of a session are counted apart, to be shown."""

    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self.evidence: Floats = begun(len(rules.checks))
        self.seen: Floats = np.zeros((2, len(rules.checks)))  # pairs and sums, of all pairs
        self.histogram = np.zeros((BINS, len(rules.checks)), dtype=np.int64)  # of what counts
        self.path: list[Step] = []
        self.pairs = 0
        self.counted = 0  # sessions
        self.again = 0  # counted ones of the self arm
        self.left_out: Counter[str] = Counter()  # pairs, by mark
        self.made_by: Counter[str] = Counter()  # pairs, by who answered: "candidate mini@1"
        self.versions: Counter[str] = Counter()  # the same, of whole answers
        self.hits: Counter[str] = Counter()  # pairs, by what no answer may hold: "candidate: IBAN"
        self._sessions: set[str] = set()

    def add(self, pair: Pair) -> dict[str, float] | None:
        """Counts a pair. What it says, by check, where it is evidence: the first of its session
        that can be compared. None: it is none."""
        self.pairs += 1
        if pair.marks:
            self.left_out.update(map(str, pair.marks))
            return None
        for arm, answer in (("primary", pair.primary), ("candidate", pair.candidate)):
            self.made_by[f"{arm} {_maker(answer)}"] += 1
            self.versions[f"{arm} {_maker(answer)}"] += not answer.failed
        self.hits.update(self.rules.guard.seen(pair).named)
        differences = np.array([_number(each.measure(pair)) for each in self.rules.checks])
        self._see(differences)
        if pair.session and pair.session in self._sessions:
            return None
        self._sessions.update([pair.session] if pair.session else [])
        self.counted += 1
        self.again += pair.again is not None
        self._weigh(differences)
        if self.counted >= (self.path[-1].counted * STRIDE if self.path else 1):
            capitals = self.evidence[3:5].tolist()
            self.path.append(Step(self.counted, tuple(capitals[0]), tuple(capitals[1])))
        names = (each.name for each in self.rules.checks)
        told = zip(names, differences.tolist(), strict=True)
        return {name: by for name, by in told if not np.isnan(by)}

    def add_later(self, pair: Pair, names: Collection[str]) -> None:
        """Counts what these checks say of a pair that is evidence, and which they could say
        nothing of when it was added: others had to be asked first."""
        found = [
            _number(each.measure(pair) if each.name in names else None)
            for each in self.rules.checks
        ]
        self._see(np.array(found))
        self._weigh(np.array(found))

    def _see(self, differences: Floats) -> None:
        said = ~np.isnan(differences)
        self.seen += np.stack([said, np.where(said, differences, 0)])

    def _weigh(self, differences: Floats) -> None:
        margins = [each.margin for each in self.rules.checks]
        self.evidence = step(self.evidence, differences, margins)
        said = ~np.isnan(differences)
        bins = np.rint((differences[said] + 1) / 2 * (BINS - 1)).astype(int)
        self.histogram[bins, np.flatnonzero(said)] += 1

    def as_dict(self) -> dict[str, Any]:
        """All of it, for JSON."""
        return {
            "checks": {
                each.name: {
                    "margin": each.margin,
                    **dict(zip(FIELDS, self.evidence[:, n].tolist(), strict=True)),
                    "seen": self.seen[:, n].tolist(),
                    "histogram": self.histogram[:, n].tolist(),
                }
                for n, each in enumerate(self.rules.checks)
            },
            "pairs": self.pairs,
            "counted": self.counted,
            "again": self.again,
            "left_out": dict(self.left_out),
            "made_by": dict(self.made_by),
            "versions": dict(self.versions),
            "hits": dict(self.hits),
            "path": [[each.counted, each.worse, each.equal] for each in self.path],
            "sessions": sorted(self._sessions),
        }

    @classmethod
    def of(cls, rules: Rules, told: Mapping[str, Any]) -> Tally:
        """What was stored under these rules. Raises `ValueError` for others: evidence that was
        gathered against one margin says nothing of another."""
        held = {name: each["margin"] for name, each in told["checks"].items()}
        if held != {each.name: each.margin for each in rules.checks}:
            raise ValueError("the stored pairs were held to other checks or margins: start anew")
        tally = cls(rules)
        for n, each in enumerate(rules.checks):
            stored = told["checks"][each.name]
            tally.evidence[:, n] = [stored[name] for name in FIELDS]
            tally.seen[:, n] = stored["seen"]
            tally.histogram[:, n] = stored["histogram"]
        tally.pairs, tally.counted, tally.again = told["pairs"], told["counted"], told["again"]
        tally.left_out, tally.made_by = Counter(told["left_out"]), Counter(told["made_by"])
        tally.versions = Counter(told.get("versions", {}))  # older tallies had none
        tally.hits = Counter(told.get("hits", {}))  # older versions counted none
        tally.path = [Step(n, tuple(worse), tuple(equal)) for n, worse, equal in told["path"]]
        tally._sessions = set(told["sessions"])
        return tally


def _maker(answer: Answer) -> str:
    return " ".join(filter(None, (answer.model, answer.adapter))) or "unnamed"


def _number(difference: float | None) -> float:
    return float("nan") if difference is None else difference
