"""What a scenario of the load benchmark is, and how its goals are judged. Values, no I/O."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from penstock.evals.scoring import Score

GATEWAY = "gateway"
NGINX = "nginx"
SOURCE = "source"  # the server behind nginx, asked directly: the floor
ALONE = "gateway alone"  # the gateway without the load beside it

ENDLESS_TOKENS = 100_000
PROMPT = (
    "You run the sluices of a long canal. Tell the keeper of the next lock, in plain words, how "
    "much water comes down today, which gates stand open, what the rain of the night has changed, "
    "and what to do first when the upper pond rises above its mark before the evening boats."
)


@dataclass(frozen=True, slots=True)
class Goal:
    """A bound on a figure of the gateway: a number, or `times` the same figure of target `than`."""

    text: str
    figure: str
    at_most: float | None = None
    at_least: float | None = None
    than: str | None = None
    times: float = 1.0

    def judge(self, scores: Mapping[str, Score]) -> Verdict:
        """How it came out; missed where the gateway or the other target has no such figure."""
        value: float | None = getattr(scores[GATEWAY], self.figure)
        limit = self._limit(scores)
        if value is None or limit is None:
            return Verdict(self.text, value, limit, passed=False)
        passed = value >= limit if self.at_least is not None else value <= limit
        return Verdict(self.text, value, limit, passed)

    def _limit(self, scores: Mapping[str, Score]) -> float | None:
        if self.than is None:
            return self.at_most if self.at_least is None else self.at_least
        other: float | None = getattr(scores[self.than], self.figure)
        return None if other is None else other * self.times


@dataclass(frozen=True, slots=True)
class Verdict:
    """How a goal came out in a run."""

    text: str
    value: float | None
    limit: float | None
    passed: bool


@dataclass(frozen=True, slots=True)
class Beside:
    """A second load on the same gateway: long prompts, each held by the engine before its answer.

    A hold makes the requests many without making the machine full: answered at once they would
    take both cores, and the first load would tell of the scheduler and nothing else.
    """

    connections: int
    prompt_bytes: int
    hold_ms: int

    def body(self, model: str) -> dict[str, object]:
        """The request of each of its connections."""
        prompt = (PROMPT + " ") * (self.prompt_bytes // len(PROMPT) + 1)
        return {
            "model": model,
            "stream": True,
            "max_tokens": 1,
            "messages": [{"role": "user", "content": prompt[: self.prompt_bytes]}],
            "simulate": {"ttft_ms": self.hold_ms},
        }


@dataclass(frozen=True, slots=True)
class Scenario:
    """One load, put on every target in turn."""

    name: str
    title: str
    tokens_per_second: float  # per stream; 0: the engine answers as fast as it can
    connections: int
    max_tokens: int  # ENDLESS_TOKENS: streams outlive the measurement
    stream: bool = True
    requests: int = 0  # the window ends after so many answers; 0: with its time
    least_warmup_ms: int = 0  # for loads that need longer than others
    least_window_ms: int = 0
    beside: Beside | None = None  # measured with it and, as target ALONE, without
    peers: tuple[str, ...] = (NGINX,)
    goals: tuple[Goal, ...] = ()

    @property
    def endless(self) -> bool:
        """Whether the client, and not the answer, ends the streams."""
        return self.max_tokens == ENDLESS_TOKENS

    @property
    def step_us(self) -> int:
        """The pace of a source that steps as the engine does; 0: whole answers at once."""
        return int(1_000_000 / self.tokens_per_second) if self.tokens_per_second else 0

    @property
    def engine_args(self) -> str:
        """Settings of the simulated engine."""
        per_request = " per_request=1" if self.beside else ""
        pace = f"tokens_per_second={self.tokens_per_second:g} ttft_ms=0"
        return f"{pace} max_running=16384{per_request}"

    @property
    def recorded_tokens(self) -> int:
        """Of the answer that the source repeats: where that is endless, some seconds' worth."""
        if not self.endless:
            return self.max_tokens
        return min(64, max(3, int(5 * self.tokens_per_second)))

    def body(self, model: str, max_tokens: int | None = None) -> dict[str, object]:
        """The request, or one like it with another length of the answer."""
        return {
            "model": model,
            "stream": self.stream,
            "max_tokens": max_tokens or self.max_tokens,
            "messages": [{"role": "user", "content": PROMPT}],
        }


def judge(scenario: Scenario, scores: Mapping[str, Score]) -> list[Verdict]:
    """The scenario's goals against the scores of its targets, and that no answer failed."""
    verdicts = [goal.judge(scores) for goal in scenario.goals]
    failures = sum(score.failures for score in scores.values())
    return [*verdicts, Verdict("no answer fails", failures, 0, failures == 0)]
