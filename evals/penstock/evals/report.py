"""One JSON and one Markdown text per run. Pure."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from penstock.evals.bench_plan import GATEWAY, NGINX
from penstock.evals.load_bench import BenchOptions, ScenarioResult
from penstock.evals.machine import Facts
from penstock.evals.scoring import Score, ratio

COLUMNS: Mapping[str, Callable[[Score], float | None]] = {
    "front us/event": lambda s: s.front_us_per_event,
    "behind us/event": lambda s: s.behind_us_per_event,
    "front us/answer": lambda s: s.front_us_per_answer,
    "behind us/answer": lambda s: s.behind_us_per_answer,
    "events/s": lambda s: s.events_per_s,
    "answers/s": lambda s: s.answers_per_s,
    "first event p50 ms": lambda s: s.first_event_p50_ms,
    "p99 ms": lambda s: s.first_event_p99_ms,
    "gap p50 ms": lambda s: s.gap_p50_ms,
    "gap p99 ms": lambda s: s.gap_p99_ms,
    "longest silence ms": lambda s: s.longest_silence_ms,
    "large prompts/s": lambda s: s.beside_per_s,
    "front KiB/connection": lambda s: s.front_kib_per_connection,
    "failures": lambda s: float(s.failures),
}


def as_json(
    results: Sequence[ScenarioResult], facts: Facts, options: BenchOptions, began: str
) -> str:
    """Everything: medians, ratios, goals, and each round as the load client reported it."""
    return json.dumps(
        {
            "began": began,
            "machine": asdict(facts),
            "options": asdict(options),
            "scenarios": [_scenario(result) for result in results],
        },
        indent=1,
    )


def _scenario(result: ScenarioResult) -> dict[str, Any]:
    scenario = result.scenario
    return {
        "name": scenario.name,
        "title": scenario.title,
        "engine_args": scenario.engine_args,
        "connections": scenario.connections,
        "max_tokens": scenario.max_tokens,
        "stream": scenario.stream,
        "events_per_answer": None if scenario.endless else result.events_per_answer,
        "recorded_bytes": result.answer_bytes,
        "targets": {
            name: {"median": asdict(score), "rounds": list(result.reports[name])}
            for name, score in result.scores.items()
        },
        "gateway_to_nginx": ratios(result.scores),
        "goals": [asdict(verdict) for verdict in result.verdicts],
    }


def ratios(scores: Mapping[str, Score]) -> dict[str, float | None]:
    """Gateway divided by nginx, column by column; empty when one of them is missing."""
    if GATEWAY not in scores or NGINX not in scores:
        return {}
    of, to = scores[GATEWAY], scores[NGINX]
    columns = {name: get for name, get in COLUMNS.items() if name != "failures"}
    return {name: ratio(get(of), get(to)) for name, get in columns.items()}


def as_markdown(results: Sequence[ScenarioResult], facts: Facts, options: BenchOptions) -> str:
    """What a person reads: one table per scenario with its goals, and a line about the machine."""
    changed = " with changes" if facts.changed else ""
    rounds = f"{options.rounds} round" + ("s" if options.rounds > 1 else "")
    doors = (
        "No key, no limits, no scrapes."
        if options.open
        else "The gateway's clients have a key and limits, and its metrics are read each second."
    )
    head = [
        f"Medians of {rounds} of {options.window_ms / 1000:g} s, targets in turn. "
        f"{facts.cores} cores ({facts.cpu}), {facts.memory_gib:g} GiB, load average "
        f"{facts.load_average[0]:.2f} at the start, revision {facts.revision[:12]}{changed}.",
        "CPU is user and system time of all threads. Front: gateway or nginx; behind: the replica "
        "or the source of nginx's events. " + doors,
    ]
    return "\n".join([*head, *(line for result in results for line in _section(result))]) + "\n"


def _section(result: ScenarioResult) -> list[str]:
    names = [name for name, get in COLUMNS.items() if _any_figure(result.scores, get)]
    rows = {
        name: [_number(COLUMNS[column](score)) for column in names]
        for name, score in result.scores.items()
    }
    if shares := ratios(result.scores):
        rows["gateway / nginx"] = [_ratio(shares.get(column)) for column in names]
    table = [f"| {name} | " + " | ".join(cells) + " |" for name, cells in rows.items()]
    title = f"\n### {result.scenario.name}: {result.scenario.title}{_shape(result)}\n"
    header = ["| target | " + " | ".join(names) + " |", "|---|" + "---:|" * len(names)]
    return [title, *header, *table, "", *(_verdict_line(v) for v in result.verdicts)]


def _shape(result: ScenarioResult) -> str:
    if result.scenario.endless:
        return ""
    events = f"{result.events_per_answer} events" if result.scenario.stream else "one JSON body"
    return f" ({events}, {result.answer_bytes} bytes an answer)"


def _any_figure(scores: Mapping[str, Score], get: Callable[[Score], float | None]) -> bool:
    return any(get(score) is not None for score in scores.values())


def _verdict_line(verdict: Any) -> str:
    mark = "PASS" if verdict.passed else "FAIL"
    return f"- {mark}: {verdict.text} ({_number(verdict.value)}, limit {_number(verdict.limit)})"


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    if value == 0 or abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.2f}" if abs(value) < 10 else f"{value:.1f}"


def _ratio(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}x"
