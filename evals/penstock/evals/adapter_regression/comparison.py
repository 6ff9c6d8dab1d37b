"""Two versions side by side, prompt by prompt: who won, and by how much. Pure."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from penstock.evals.adapter_regression.dataset import Prompt
from penstock.evals.adapter_regression.scores import Scored
from penstock.evals.comparison.intervals import (
    Interval,
    chance_of,
    mean_ratio,
    mean_within,
    share,
)
from penstock.evals.scoring import quantile


class Outcome(StrEnum):
    """What became of a prompt, as the candidate sees it."""

    WIN = "win"
    LOSS = "loss"
    TIE = "tie"
    NOT_COMPARED = "not compared"  # the baseline gave no answer: nothing to be better than


@dataclass(frozen=True, slots=True)
class Pair:
    """The two answers to one prompt. Where the candidate alone has none, it lost."""

    prompt: Prompt
    candidate: Scored
    baseline: Scored
    outcome: Outcome

    @property
    def difference(self) -> float:
        """By how much the candidate's score is higher."""
        return self.candidate.score - self.baseline.score


@dataclass(frozen=True, slots=True)
class Side:
    """One version's figures over all prompts; errors count as answers that meet nothing."""

    asked: int
    errors: Interval | None
    score: Interval | None
    checks: dict[str, Interval]  # by kind: the share that meets it, or the mean similarity
    similarity: Interval | None
    refusals: Interval | None
    cut_off: int  # answers that ended at max_tokens
    latency_p50_ms: float | None
    latency_p95_ms: float | None
    words_p50: float | None


@dataclass(frozen=True, slots=True)
class Comparison:
    """All pairs, and what they say together."""

    pairs: tuple[Pair, ...]
    candidate: Side
    baseline: Side
    wins: int
    losses: int
    ties: int
    loss_share: Interval | None  # of the compared
    win_share: Interval | None  # of those that one of the two won
    chance: float | None  # of so uneven a count where neither is better
    difference: Interval | None  # of the scores
    latency_ratio: Interval | None  # candidate / baseline, over pairs with two answers

    @property
    def compared(self) -> int:
        """Prompts that tell which version is better, ties included."""
        return self.wins + self.losses + self.ties


def pair(prompt: Prompt, candidate: Scored, baseline: Scored, tie_margin: float) -> Pair:
    """The pair, with its outcome: scores that differ by `tie_margin` or less are a tie."""
    difference = candidate.score - baseline.score
    if baseline.failed:
        outcome = Outcome.NOT_COMPARED
    elif candidate.failed:
        outcome = Outcome.LOSS
    elif abs(difference) <= tie_margin + 1e-9:
        outcome = Outcome.TIE
    else:
        outcome = Outcome.WIN if difference > 0 else Outcome.LOSS
    return Pair(prompt, candidate, baseline, outcome)


def compare(pairs: Sequence[Pair], confidence: float, seed: int) -> Comparison:
    """What the pairs say together; intervals at that confidence."""
    compared = [each for each in pairs if each.outcome is not Outcome.NOT_COMPARED]
    counts = {kind: sum(each.outcome is kind for each in pairs) for kind in Outcome}
    wins, losses = counts[Outcome.WIN], counts[Outcome.LOSS]
    # An error's score is 0 as a wrong answer's is, whatever the baseline's was.
    differences = [each.difference for each in compared]
    both = [each for each in compared if not each.candidate.failed]
    latencies = [(p.candidate.answer.latency_ms, p.baseline.answer.latency_ms) for p in both]
    return Comparison(
        pairs=tuple(pairs),
        candidate=_side([each.candidate for each in pairs], confidence, seed),
        baseline=_side([each.baseline for each in pairs], confidence, seed),
        wins=wins,
        losses=losses,
        ties=counts[Outcome.TIE],
        loss_share=share(losses, len(compared), confidence),
        win_share=share(wins, wins + losses, confidence),
        chance=chance_of(wins, losses),
        difference=mean_within(differences, -1, 1, confidence, seed),
        latency_ratio=mean_ratio(latencies, confidence, seed),
    )


def _side(answers: Sequence[Scored], confidence: float, seed: int) -> Side:
    given = [each for each in answers if not each.failed]
    latencies = sorted(each.answer.latency_ms for each in given)
    alike = [each.similarity for each in answers if each.similarity is not None]
    kinds = sorted({kind for each in answers for kind in each.checks})
    found = {kind: _check(answers, kind, confidence, seed) for kind in kinds}
    return Side(
        asked=len(answers),
        errors=share(len(answers) - len(given), len(answers), confidence),
        score=mean_within([each.score for each in answers], 0, 1, confidence, seed),
        checks={kind: interval for kind, interval in found.items() if interval is not None},
        similarity=mean_within(alike, 0, 1, confidence, seed),
        refusals=share(sum(each.refused for each in given), len(given), confidence),
        cut_off=sum(each.answer.finish_reason == "length" for each in given),
        latency_p50_ms=quantile(latencies, 0.5) if latencies else None,
        latency_p95_ms=quantile(latencies, 0.95) if latencies else None,
        words_p50=_median([len(each.answer.text.split()) for each in given]),
    )


def _check(answers: Sequence[Scored], kind: str, confidence: float, seed: int) -> Interval | None:
    values = [each.checks[kind] for each in answers if kind in each.checks]
    if all(value in (0, 1) for value in values):
        return share(round(sum(values)), len(values), confidence)
    return mean_within(values, 0, 1, confidence, seed)


def _median(values: Sequence[float]) -> float | None:
    return float(statistics.median(values)) if values else None
