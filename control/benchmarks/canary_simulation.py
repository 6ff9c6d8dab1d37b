"""What a canary's guards cost and miss, by the very function that the head runs.

Sessions arrive one after the other, fall to an arm by chance, and break, end badly or are slow by
chance; the guards are looked at as the head does, again and again. The tables are those of
docs/concepts/canary_statistics.md. Run it, in about half an hour on one core, as
`PYTHONPATH=control .venv/bin/python -m benchmarks.canary_simulation`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from penstock.control.state.canary.canary import Edge
from penstock.control.state.canary.counts import (
    BINS,
    PER_OCTAVE,
    SHORTEST_US,
    ArmCounts,
    Bins,
    Counts,
)
from penstock.control.state.canary.guards import TIMES, Finding, Verdict, edges_of, findings
from penstock.control.state.canary.spec import DEFAULT_STEPS, CanarySpec, Step, Target

SHARES = (10, 50, 250, 500)  # permille
STABLE_FAILS = 0.001
MEDIANS_US = {"ttft": 200e3, "between_tokens": 20e3, "total": 3e6}
SPREADS = {"ttft": 0.5, "between_tokens": 0.25, "total": 0.8}  # of the natural logarithm


@dataclass(frozen=True, slots=True)
class World:
    """What sessions come to."""

    permille: int
    fails: float = STABLE_FAILS  # of the candidate's sessions
    stable_fails: float = STABLE_FAILS
    ends_badly: float = 0.02
    stable_ends_badly: float = 0.02
    slower: float = 1.0  # times the candidate takes what the stable arm takes
    slow_tail: float = 1.0  # times that its slowest fifth takes
    outage: tuple[int, int] = (0, 0)  # from which to which session one in twenty of both fails
    timed: bool = True


def say(line: str) -> None:
    """Prints a line at once."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def spec_at(permille: int) -> tuple[CanarySpec, int]:
    """The default steps, with this share as one of them; and which."""
    index = [step.permille for step in DEFAULT_STEPS].index(permille)
    return CanarySpec("simulated", Target("chat"), "next"), index + 1


def counts_of(world: World, sessions: int, every: int, random: Any) -> Iterator[Counts]:
    """What gateways have counted after each so many sessions."""
    total = Counts()
    for begin in range(0, sessions, every):
        mine = random.random(every) < world.permille / 1000
        for is_candidate in (True, False):
            new = _arm(world, is_candidate, int((mine == is_candidate).sum()), begin, random)
            total = replace(total, **_named(total, is_candidate, new))
        yield total


def _named(total: Counts, is_candidate: bool, new: ArmCounts) -> dict[str, ArmCounts]:
    if is_candidate:
        return {"candidate": total.candidate.plus(new)}
    return {"stable": total.stable.plus(new)}


def _arm(world: World, is_candidate: bool, sessions: int, begin: int, random: Any) -> ArmCounts:
    first, last = world.outage
    rate = world.fails if is_candidate else world.stable_fails
    rate = 0.05 if first <= begin < last else rate
    bad = int(random.binomial(sessions, rate))
    answered = sessions - bad
    ends_badly = world.ends_badly if is_candidate else world.stable_ends_badly
    times: dict[str, Any] = {
        name: _bins(world, is_candidate, name, answered, random) if world.timed else ()
        for name in TIMES
    }
    return ArmCounts(
        sessions=sessions,
        bad_sessions=bad,
        answered_sessions=answered,
        bad_finishes=int(random.binomial(answered, ends_badly)),
        **times,
    )


def _bins(world: World, is_candidate: bool, name: str, count: int, random: Any) -> Bins:
    normal = random.standard_normal(count)
    took = MEDIANS_US[name] * np.exp(SPREADS[name] * normal)
    if is_candidate:
        took = took * world.slower * np.where(normal > 0.8416, world.slow_tail, 1.0)
    bins = np.clip(np.floor(PER_OCTAVE * np.log2(took / SHORTEST_US)), 0, BINS - 1).astype(int)
    found = np.bincount(bins)
    return tuple((int(each), int(found[each])) for each in np.flatnonzero(found))


@dataclass(frozen=True, slots=True)
class Run:
    """How one canary's step ended."""

    counts: Counts
    rolled_back_by: str = ""  # the guard; empty: none did
    goes_on: bool = False


def run(
    world: World, sessions: int, every: int, random: Any, *, until_it_goes_on: bool = False
) -> Run:
    """One step, until a guard rolls it back, it may go on, or there are no more sessions."""
    spec, step = spec_at(world.permille)
    edges: tuple[Edge, ...] = ()
    counts = Counts()
    for counts in counts_of(world, sessions, every, random):
        edges = edges_of(edges, counts)
        found = findings(spec, step, counts, edges)
        if bad := next((each.guard for each in found if each.verdict is Verdict.WORSE), ""):
            return Run(counts, rolled_back_by=bad)
        if until_it_goes_on and _may_go_on(spec.steps[step - 1], counts, found):
            return Run(counts, goes_on=True)
    return Run(counts)


def _may_go_on(step: Step, counts: Counts, found: tuple[Finding, ...]) -> bool:
    fewest = min(counts.stable.sessions, counts.candidate.sessions)
    good = all(each.verdict in (Verdict.EQUAL, Verdict.BETTER) for each in found)
    return fewest >= step.min_sessions and good


def failing(runs: int, random: Any) -> None:
    """What a candidate costs that fails."""
    say("\nsessions that fail before the rollback, p50 / p95 (of so many of the candidate, p95)\n")
    say("| share | fails 100 % | fails 20 % | fails 2 % |\n|---:|---:|---:|---:|")
    for permille in SHARES:
        cells = []
        for fails in (1.0, 0.2, 0.02):
            world = World(permille, fails=fails, timed=False)
            every = max(1, round(0.25 / (permille / 1000 * fails)))
            ended = [run(world, 10**7, every, random) for _ in range(runs)]
            bad = [each.counts.candidate.bad_sessions for each in ended]
            seen = [each.counts.candidate.sessions for each in ended]
            p50, p95 = np.percentile(bad, (50, 95))
            cells.append(f"{p50:.0f} / {p95:.0f} ({np.percentile(seen, 95):,.0f})")
        say(f"| {permille / 10:g} % | " + " | ".join(cells) + " |")


def alike(runs: int, sessions: int, random: Any) -> None:
    """How often an equal candidate is rolled back."""
    many = f"{runs} runs, {runs // 2} with times"
    say(f"\nrolled back though equal, in {sessions:,} sessions, of {many}\n")
    say("| share | by errors | with an outage of both | by any guard | with an outage of both |")
    say("|---:|---:|---:|---:|---:|")
    outage = (sessions // 4, sessions // 2)
    for permille in SHARES:
        cells = []
        for timed in (False, True):
            for when in ((0, 0), outage):
                world = World(permille, timed=timed, outage=when)
                every = 500 if timed else 100
                tries = runs // 2 if timed else runs
                ended = [run(world, sessions, every, random) for _ in range(tries)]
                by_errors = sum(each.rolled_back_by == "errors" for each in ended)
                by_any = sum(bool(each.rolled_back_by) for each in ended)
                cells.append(f"{(by_any if timed else by_errors) / tries:.2%}")
        say(f"| {permille / 10:g} % | " + " | ".join(cells) + " |")


def slower(runs: int, random: Any) -> None:
    """How soon a slow one is seen, and how often one is let go on."""
    say("\nsessions of the candidate until the verdict, p50 / p95 (share that is rolled back)\n")
    worlds = {
        "equal": {},
        "half as slow again": {"slower": 1.5},
        "its slowest fifth half as slow again": {"slow_tail": 1.5},
        "ends badly in 6 %, not 2 %": {"ends_badly": 0.06},
        "fails in 2 %, not 0.1 %": {"fails": 0.02},
    }
    say("| share | " + " | ".join(worlds) + " |\n|---:|" + "---:|" * len(worlds))
    for permille in SHARES:
        cells = []
        for named in worlds.values():
            world = World(permille, **named)  # type: ignore[arg-type]
            every = max(10, round(5 / (permille / 1000)))
            ended = [
                run(world, every * 1000, every, random, until_it_goes_on=True) for _ in range(runs)
            ]
            seen = [each.counts.candidate.sessions for each in ended]
            back = sum(bool(each.rolled_back_by) for each in ended) / runs
            p50, p95 = np.percentile(seen, (50, 95))
            cells.append(f"{p50:,.0f} / {p95:,.0f} ({back:.0%})")
        say(f"| {permille / 10:g} % | " + " | ".join(cells) + " |")


def main() -> None:
    """Prints the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=300)
    parser.add_argument("--sessions", type=int, default=200_000)
    parser.add_argument("--seed", type=int, default=7)
    options = parser.parse_args()
    random = np.random.default_rng(options.seed)
    failing(options.runs, random)
    slower(options.runs, random)
    alike(options.runs, options.sessions, random)


if __name__ == "__main__":
    main()
