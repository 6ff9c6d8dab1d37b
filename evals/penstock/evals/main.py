"""The command line of the evals: `python -m penstock.evals.main bench`."""

from __future__ import annotations

import json
import shlex
import shutil
import sys
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from penstock.evals import machine, report, scenarios
from penstock.evals import prefix_routing as prefixes
from penstock.evals import rude_bench as rude
from penstock.evals import shadow_latency as shadows
from penstock.evals import wait_estimate as waits
from penstock.evals.adapter_regression.command import adapter_regression
from penstock.evals.bench_plan import Scenario
from penstock.evals.errors import EvalError
from penstock.evals.first_token import measure
from penstock.evals.load_bench import BenchOptions, LoadBench, ScenarioResult
from penstock.evals.native import NativePrograms
from penstock.evals.options import Strict, told_in_a_line
from penstock.evals.quantization_regression.command import quantization_regression
from penstock.evals.replay.command import replay
from penstock.evals.scenarios import SCENARIOS
from penstock.evals.shadow_compare.command import (
    log_to_mlflow,
    shadow_compare,
    shadow_plan,
    shadow_simulation,
)

CHECKOUT = Path(__file__).resolve().parents[3]
NATIVE = CHECKOUT / "build" / "evals"
NGINX_PLACES = ("nginx", "/usr/sbin/nginx", "/usr/local/sbin/nginx")

app = typer.Typer(no_args_is_help=True, add_completion=False)


@app.callback()
def evals() -> None:
    """Measures Penstock from outside."""


@app.command()
def bench(
    scenario: Annotated[
        list[str] | None, typer.Option(help="Only this scenario; may be repeated.")
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="One round of short windows: does it work at all?")
    ] = False,
    rounds: Annotated[int, typer.Option(min=1, help="Rounds per scenario.")] = 3,
    window: Annotated[float, typer.Option(min=0.2, help="Seconds of one measurement.")] = 4.0,
    warmup: Annotated[float, typer.Option(min=0, help="Seconds of load before it.")] = 1.0,
    out: Annotated[
        Path, typer.Option(help="Folder for bench.json, bench.md and the logs.")
    ] = CHECKOUT / "build" / "bench",
    native: Annotated[Path, typer.Option(help="Build folder of evals/native.")] = NATIVE,
    serve: Annotated[
        str, typer.Option(help="Command that takes the options of `penstock serve`.")
    ] = "",
    serve_args: Annotated[str, typer.Option(help="More options for it.")] = "",
    nginx: Annotated[str, typer.Option(help="nginx's program.")] = "",
    open_: Annotated[
        bool,
        typer.Option("--open", help="Without key, limits and scrapes: tells what these cost."),
    ] = False,
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit code 1 also when a goal of speed is missed.")
    ] = False,
) -> None:
    """CPU, latency and memory of the gateway beside nginx, on the simulated engine."""
    with told_in_a_line():
        options = BenchOptions(
            serve_command=(*_serve_command(serve), *shlex.split(serve_args)),
            nginx=nginx or _nginx_program(),
            rounds=1 if quick else rounds,
            warmup_ms=300 if quick else round(warmup * 1000),
            window_ms=2000 if quick else round(window * 1000),
            open=open_,
        )
        results = _run(_chosen(scenario or []), options, native, out.resolve())
    raise typer.Exit(_exit_code(results, strict=strict))


Out = Annotated[Path, typer.Option(help="Folder for what it finds, and the logs.")]
Serve = Annotated[str, typer.Option(help="Command that takes the options of `penstock serve`.")]
BENCH_OUT = CHECKOUT / "build" / "bench"


@app.command()
def first_token(
    requests: Annotated[int, typer.Option(min=1, help="Requests each way.")] = 200,
    out: Out = BENCH_OUT,
    serve: Serve = "",
    probe: Annotated[
        str, typer.Option(help="Command that times the engine alone.")
    ] = f"{sys.executable} -m penstock.replica.probe",
) -> None:
    """Time to first token on real vLLM: through the gateway beside the engine alone."""
    with told_in_a_line():
        folder = _emptied(out, "first-token")
        found = measure(_serve_command(serve), shlex.split(probe), requests, folder)
    typer.echo(found.as_markdown())


@app.command()
def prefix_routing(
    requests: Annotated[int, typer.Option(min=1, help="Requests that count, each policy.")] = 300,
    out: Out = BENCH_OUT,
    serve: Serve = "",
) -> None:
    """Prefix hits and first tokens on real vLLM: prefix_aware beside power_of_two."""
    with told_in_a_line():
        folder = _emptied(out, "prefix-routing")
        command = _serve_command(serve)
        results = [
            prefixes.measure(command, policy, requests, folder / policy)
            for policy in prefixes.POLICIES
        ]
    _keep(folder, prefixes.as_dict(results), prefixes.as_markdown(results))


@app.command()
def wait_estimate(
    seconds: Annotated[float, typer.Option(min=1, help="Of each load.")] = 30,
    out: Out = BENCH_OUT,
    serve: Serve = "",
    strict: Strict = False,
) -> None:
    """What the gateway tells of waits beside what they are, on the simulated engine."""
    with told_in_a_line():
        folder = _emptied(out, "wait-estimate")
        command = _serve_command(serve)
        results = [
            waits.measure(command, shape, seconds, folder / shape.name) for shape in waits.SHAPES
        ]
    _keep(folder, waits.as_dict(results), waits.as_markdown(results))
    raise typer.Exit(1 if strict and not all(each.passed for each in results) else 0)


@app.command()
def rude_clients(
    kind: Annotated[list[str] | None, typer.Option(help="Only this kind; may be repeated.")] = None,
    seconds: Annotated[float, typer.Option(min=1, help="Of each kind.")] = 30,
    out: Out = BENCH_OUT,
    serve: Serve = "",
    strict: Strict = False,
) -> None:
    """What one tenant's rude clients do to another's chats and streams, on real vLLM."""
    with told_in_a_line():
        if unknown := set(kind or ()) - set(rude.CHOICES):
            raise EvalError(f"there is no kind {unknown.pop()!r}: {', '.join(rude.CHOICES)}")
        folder = _emptied(out, "rude-clients")
        command = _serve_command(serve)
        results = rude.measure(command, kind or rude.CHOICES, seconds, folder, _progress)
    _keep(folder, [asdict(each) for each in results], rude.as_markdown(results))
    raise typer.Exit(1 if strict and not all(each.passed for each in results) else 0)


@app.command()
def shadow_latency(
    rounds: Annotated[int, typer.Option(min=2, help="Each of a window without and one with.")] = 20,
    window: Annotated[float, typer.Option(min=1, help="Seconds of one measurement.")] = 6,
    out: Out = BENCH_OUT,
    native: Annotated[Path, typer.Option(help="Build folder of evals/native.")] = NATIVE,
    serve: Serve = "",
    strict: Strict = False,
) -> None:
    """What a shadow of all requests costs clients' waits, on the simulated engine."""
    with told_in_a_line():
        folder = _emptied(out, "shadow-latency")
        programs = NativePrograms(native)
        command = _serve_command(serve)
        found = shadows.measure(command, programs, rounds, window, folder, _progress)
    _keep(folder, shadows.as_dict(found), shadows.as_markdown(found))
    raise typer.Exit(1 if strict and not found.passed else 0)


app.command()(adapter_regression)
app.command()(quantization_regression)
app.command()(replay)
app.command()(shadow_compare)
app.command()(shadow_plan)
app.command(hidden=True)(log_to_mlflow)
app.command()(shadow_simulation)


def _emptied(out: Path, name: str) -> Path:
    folder = out.resolve() / name
    shutil.rmtree(folder, ignore_errors=True)
    return folder


def _keep(folder: Path, results: object, markdown: str) -> None:
    facts = asdict(machine.facts(CHECKOUT))
    found = {"machine": facts, "results": results}
    (folder / "result.json").write_text(json.dumps(found, indent=1))
    (folder / "result.md").write_text(markdown + "\n")
    typer.echo(markdown)


def _run(
    chosen: list[Scenario], options: BenchOptions, native: Path, out: Path
) -> list[ScenarioResult]:
    began = datetime.now(UTC).isoformat(timespec="seconds")
    facts = machine.facts(CHECKOUT)
    logs = out / "logs"
    shutil.rmtree(logs, ignore_errors=True)
    runner = LoadBench(NativePrograms(native), options, logs, _progress)
    results = [runner.run(each) for each in chosen]
    markdown = report.as_markdown(results, facts, options)
    (out / "bench.json").write_text(report.as_json(results, facts, options, began))
    (out / "bench.md").write_text(markdown)
    typer.echo(markdown)
    return results


def _exit_code(results: list[ScenarioResult], *, strict: bool) -> int:
    missed = any(not verdict.passed for result in results for verdict in result.verdicts)
    failures = any(score.failures for result in results for score in result.scores.values())
    return 1 if failures or (strict and missed) else 0


def _chosen(names: list[str]) -> list[Scenario]:
    known = ", ".join(each.name for each in SCENARIOS)
    chosen = []
    for name in names:
        found = scenarios.named(name)
        if found is None:
            raise EvalError(f"there is no scenario {name!r}: choose among {known}")
        chosen.append(found)
    return chosen or list(SCENARIOS)


def _serve_command(given: str) -> list[str]:
    if given:
        return shlex.split(given)
    installed = Path(sys.executable).with_name("penstock")
    if not installed.exists():
        raise EvalError(f"{installed} is missing: install the project, or name --serve")
    return [str(installed), "serve"]


def _nginx_program() -> str:
    for place in NGINX_PLACES:
        if found := shutil.which(place):
            return found
    raise EvalError("nginx is not installed: install it (apt-get install nginx), or name --nginx")


def _progress(line: str) -> None:
    typer.echo(line, err=True)


if __name__ == "__main__":
    app()
