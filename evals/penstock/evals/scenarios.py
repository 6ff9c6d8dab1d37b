"""What the load benchmark measures: its scenarios and their goals, as values.

To add a scenario, add it to `SCENARIOS`; the README says what its fields mean.
"""

from __future__ import annotations

from penstock.evals.bench_plan import (
    ALONE,
    ENDLESS_TOKENS,
    NGINX,
    SOURCE,
    Beside,
    Goal,
    Scenario,
)

_PACED_GOALS = (
    Goal(
        "gateway spends at most half of nginx's CPU per event",
        "front_us_per_event",
        than=NGINX,
        times=0.5,
    ),
)
_REPLICA_GOAL = Goal(
    "replica makes 20,000 short answers per core and second", "behind_us_per_answer", at_most=50
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
        name="paced-10000",
        title="10,000 streams, an event each second",
        tokens_per_second=1,
        connections=10_000,
        max_tokens=ENDLESS_TOKENS,
        peers=(),  # nginx holds two descriptors for each stream: 20,000 are more than most may have
        least_warmup_ms=3_000,
        least_window_ms=10_000,
        goals=(
            Goal("every stream is fed to the end", "longest_silence_ms", at_most=2_000),
            Goal("the events that are due come", "events_per_s", at_least=9_500),
            Goal(
                "a stream holds less than 20 KiB in the gateway",
                "front_kib_per_connection",
                at_most=20,
            ),
        ),
    ),
    Scenario(
        name="short-streamed",
        title="one-token answers back to back, streamed, 64 connections",
        tokens_per_second=0,
        connections=64,
        max_tokens=1,
        goals=(
            Goal(
                "a streamed answer costs no more CPU than nginx's",
                "front_us_per_answer",
                than=NGINX,
            ),
            _REPLICA_GOAL,
        ),
    ),
    Scenario(
        name="short-unary",
        title="one-token answers back to back, unary, 64 connections",
        tokens_per_second=0,
        connections=64,
        max_tokens=1,
        stream=False,
        goals=(
            Goal(
                "a unary answer costs at most 1.1 of nginx's CPU",
                "front_us_per_answer",
                than=NGINX,
                times=1.1,
            ),
            _REPLICA_GOAL,
        ),
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
    Scenario(
        name="large-prompts",
        title="one-token answers, unary, 16 connections, beside 150 prompts of 220 KB",
        tokens_per_second=0,
        connections=16,
        max_tokens=1,
        stream=False,
        peers=(),
        beside=Beside(connections=150, prompt_bytes=220_000, hold_ms=1_000),
        goals=(
            Goal(
                "the p99 of small requests is at most twice that of alone",
                "first_event_p99_ms",
                than=ALONE,
                times=2,
            ),
        ),
    ),
)


def named(name: str) -> Scenario | None:
    """The scenario of that name."""
    return next((each for each in SCENARIOS if each.name == name), None)
