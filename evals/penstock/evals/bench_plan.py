"""What the load benchmark measures: scenarios and goals, as values. No I/O.

To add a scenario, add it to `SCENARIOS`; the README says what its fields mean.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from penstock.evals.scoring import Score

GATEWAY = "gateway"
NGINX = "nginx"
SOURCE = "source"  # the server behind nginx, asked directly: the floor

ENDLESS_TOKENS = 100_000
PROMPT = (
    "You run the sluices of a long canal. Tell the keeper of the next lock, in plain words, how "
    "much water comes down today, which gates stand open, what the rain of the night has changed, "
    "and what to do first when the upper pond rises above its mark before the evening boats."
)


@dataclass(frozen=True, slots=True)
class Goal:
    """An upper bound on a figure of the gateway: a number, or the same figure of target `than`."""

    text: str
    figure: str
    at_most: float | None = None
    than: str | None = None

    def limit(self, scores: Mapping[str, Score]) -> float | None:
        """The bound in this run; None where the other target has no such figure."""
        if self.than is None:
            return self.at_most
        other: float | None = getattr(scores[self.than], self.figure)
        return other


@dataclass(frozen=True, slots=True)
class Verdict:
    """How a goal came out in a run."""

    text: str
    value: float | None
    limit: float | None
    passed: bool


@dataclass(frozen=True, slots=True)
class Scenario:
    """One load, put on every target in turn."""

    name: str
    title: str
    tokens_per_second: int  # per stream; 0: the engine answers as fast as it can
    connections: int
    max_tokens: int  # ENDLESS_TOKENS: streams outlive the measurement
    stream: bool = True
    requests: int = 0  # the window ends after so many answers; 0: with its time
    peers: tuple[str, ...] = (NGINX,)
    goals: tuple[Goal, ...] = ()

    @property
    def endless(self) -> bool:
        """Whether the client, and not the answer, ends the streams."""
        return self.max_tokens == ENDLESS_TOKENS

    @property
    def step_us(self) -> int:
        """The pace of a source that steps as the engine does; 0: whole answers at once."""
        return 1_000_000 // self.tokens_per_second if self.tokens_per_second else 0

    @property
    def engine_args(self) -> str:
        """Settings of the simulated engine."""
        return f"tokens_per_second={self.tokens_per_second} ttft_ms=0 max_running=16384"

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
    verdicts = []
    for goal in scenario.goals:
        value: float | None = getattr(scores[GATEWAY], goal.figure)
        limit = goal.limit(scores)
        passed = value is not None and limit is not None and value <= limit
        verdicts.append(Verdict(goal.text, value, limit, passed))
    failures = sum(score.failures for score in scores.values())
    return [*verdicts, Verdict("no answer fails", failures, 0, failures == 0)]


_PACED_GOALS = (
    Goal("gateway spends less CPU per event than nginx", "front_us_per_event", than=NGINX),
)
_SHORT_GOALS = (
    Goal("gateway spends at most 30 us per short answer", "front_us_per_answer", at_most=30),
    Goal(
        "replica makes 20,000 short answers per core and second", "behind_us_per_answer", at_most=50
    ),
)

SCENARIOS = (
    Scenario(
        name="paced-256",
        title="256 streams, an event each 20 ms",
        tokens_per_second=50,
        connections=256,
        max_tokens=ENDLESS_TOKENS,
        goals=_PACED_GOALS,
    ),
    Scenario(
        name="paced-1024",
        title="1,024 streams, an event each 50 ms",
        tokens_per_second=20,
        connections=1024,
        max_tokens=ENDLESS_TOKENS,
        goals=_PACED_GOALS,
    ),
    Scenario(
        name="short-streamed",
        title="one-token answers back to back, streamed, 64 connections",
        tokens_per_second=0,
        connections=64,
        max_tokens=1,
        goals=_SHORT_GOALS,
    ),
    Scenario(
        name="short-unary",
        title="one-token answers back to back, unary, 64 connections",
        tokens_per_second=0,
        connections=64,
        max_tokens=1,
        stream=False,
        goals=_SHORT_GOALS,
    ),
    Scenario(
        name="engine-speed",
        title="answers of 512 tokens as fast as they go, 32 connections",
        tokens_per_second=0,
        connections=32,
        max_tokens=512,
        peers=(),
        goals=(
            Goal(
                "replica makes 300,000 events per core and second",
                "behind_us_per_event",
                at_most=3.33,
            ),
        ),
    ),
    Scenario(
        name="first-event",
        title="1,000 streamed answers one after the other, 1 connection",
        tokens_per_second=0,
        connections=1,
        max_tokens=16,
        requests=1000,
        peers=(NGINX, SOURCE),
    ),
)


def named(name: str) -> Scenario | None:
    """The scenario of that name."""
    return next((each for each in SCENARIOS if each.name == name), None)
