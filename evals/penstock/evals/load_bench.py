"""Runs the scenarios of the load benchmark: every round puts the load on each target in turn.

The gateway's own streamed answer is recorded first and handed to the source behind nginx, so that
both carry the same bytes. Only one target is under load at any time.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock.evals import bench_plan
from penstock.evals.bench_plan import Scenario, Verdict
from penstock.evals.client import Answer, ask
from penstock.evals.errors import EvalError
from penstock.evals.native import Load, NativePrograms, Source, Target
from penstock.evals.nginx import nginx
from penstock.evals.penstock_system import MODEL, penstock, simulated
from penstock.evals.scoring import FRONT, Score, combined, window_from
from penstock.evals.scraping import scraped


@dataclass(frozen=True, slots=True)
class BenchOptions:
    """How the benchmark runs, whatever the scenario."""

    serve_command: tuple[str, ...]  # takes the options of `penstock serve`
    nginx: str
    rounds: int = 3
    warmup_ms: int = 1_000
    window_ms: int = 4_000
    open: bool = False  # no key, no limits, no scrapes: what these cost is the difference


@dataclass(frozen=True, slots=True)
class Turn:
    """What is measured when it is its turn in a round."""

    name: str
    target: Target
    beside: Path | None = None  # the body of the load beside it


@dataclass(frozen=True, slots=True)
class ScenarioResult:
    """What came of one scenario."""

    scenario: Scenario
    events_per_answer: int  # of the recorded answer; 0: unary
    answer_bytes: int
    scores: Mapping[str, Score]
    verdicts: Sequence[Verdict]
    reports: Mapping[str, Sequence[Mapping[str, Any]]]  # the load client's, round by round


class LoadBench:
    """The benchmark in a folder of its own, which keeps logs and recordings."""

    def __init__(
        self,
        programs: NativePrograms,
        options: BenchOptions,
        folder: Path,
        progress: Callable[[str], None],
    ) -> None:
        self._programs = programs
        self._options = options
        self._folder = folder
        self._progress = progress

    def run(self, scenario: Scenario) -> ScenarioResult:
        """Starts a Penstock, records its answer, and measures it beside the scenario's peers."""
        folder = self._folder / scenario.name
        folder.mkdir(parents=True)
        self._progress(f"{scenario.name}: {scenario.title}")
        engine = simulated(scenario.engine_args)
        with penstock(self._options.serve_command, engine, folder) as system:
            gateway = system.target if self._options.open else system.keyed()
            recorded = record(scenario, gateway)
            return self.measure(scenario, recorded, folder, gateway)

    def measure(
        self, scenario: Scenario, recorded: Answer, folder: Path, gateway: Target | None
    ) -> ScenarioResult:
        """Measures the gateway, if there is one, and the scenario's peers with that recording."""
        with contextlib.ExitStack() as stack:
            targets = [gateway] if gateway else []
            targets += self._peers(scenario, recorded, folder, stack)
            reports = self._rounds(scenario, turns_of(scenario, targets, folder), folder)
        scores = {
            name: combined([window_from(report) for report in rounds], scenario.connections)
            for name, rounds in reports.items()
        }
        verdicts = bench_plan.judge(scenario, scores) if gateway else []
        answer = (recorded.events, len(recorded.body))
        return ScenarioResult(scenario, *answer, scores, verdicts, reports)

    def _peers(
        self, scenario: Scenario, recorded: Answer, folder: Path, stack: contextlib.ExitStack
    ) -> list[Target]:
        if not scenario.peers:
            return []
        source = stack.enter_context(self._programs.source(recorded, scenario.step_us, folder))
        return [self._peer(name, source, folder, stack) for name in scenario.peers]

    def _peer(self, name: str, source: Source, folder: Path, stack: contextlib.ExitStack) -> Target:
        if name == bench_plan.NGINX:
            return stack.enter_context(nginx(self._options.nginx, source, folder))
        return Target(name, source.port, {FRONT: source.pid})

    def _rounds(
        self, scenario: Scenario, turns: Sequence[Turn], folder: Path
    ) -> dict[str, list[Mapping[str, Any]]]:
        load = Load(
            connections=scenario.connections,
            warmup_ms=max(self._options.warmup_ms, scenario.least_warmup_ms),
            window_ms=max(self._options.window_ms, scenario.least_window_ms),
            requests=scenario.requests,
            endless=scenario.endless,
        )
        body = folder / "request.json"
        body.write_text(json.dumps(scenario.body(MODEL)))
        reports: dict[str, list[Mapping[str, Any]]] = {turn.name: [] for turn in turns}
        for number in range(self._options.rounds):
            for turn in turns if number % 2 == 0 else reversed(turns):
                self._progress(f"  round {number + 1} of {self._options.rounds}: {turn.name}")
                report = self._turn(scenario, turn, load, body)
                reports[turn.name].append(report)
                _refuse_an_empty_window(turn, report)
        return reports

    def _turn(self, scenario: Scenario, turn: Turn, load: Load, body: Path) -> Mapping[str, Any]:
        with scraped(turn.target.metrics_url):
            if turn.beside is None or scenario.beside is None:
                return self._programs.load(turn.target, load, body)
            connections = scenario.beside.connections
            folder = turn.beside.parent
            with self._programs.kept(turn.target, connections, turn.beside, folder) as beside:
                report = self._programs.load(turn.target, load, body)
            return {**report, "beside": beside}


def turns_of(scenario: Scenario, targets: Sequence[Target], folder: Path) -> list[Turn]:
    """The targets, each with the load beside it where there is one; and then the gateway alone."""
    if scenario.beside is None:
        return [Turn(target.name, target) for target in targets]
    body = folder / "beside.json"
    body.write_text(json.dumps(scenario.beside.body(MODEL)))
    alone = [Turn(bench_plan.ALONE, each) for each in targets if each.name == bench_plan.GATEWAY]
    return [*(Turn(target.name, target, body) for target in targets), *alone]


def record(scenario: Scenario, target: Target) -> Answer:
    """One answer of the target to the scenario's request, cut short where that is endless."""
    body = scenario.body(MODEL, scenario.recorded_tokens)
    return ask(f"http://127.0.0.1:{target.port}", body, target.key)


def _refuse_an_empty_window(turn: Turn, report: Mapping[str, Any]) -> None:
    if report["seconds"] == 0:
        raise EvalError(f"{turn.name} could not be measured: {report['problem']}")
