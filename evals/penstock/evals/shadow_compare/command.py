"""`evals shadow-compare`, and what its verdicts are worth: `shadow-plan`, `shadow-simulation`."""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Final, TypeVar

import typer

from penstock.evals import options
from penstock.evals.comparison import plan as plans
from penstock.evals.comparison import simulation
from penstock.evals.comparison.bad_check import BadCheck
from penstock.evals.comparison.betting import Verdict
from penstock.evals.comparison.page import as_page
from penstock.evals.comparison.report import Report, as_dict, as_markdown, report
from penstock.evals.comparison.rules import Rules, rules
from penstock.evals.comparison.tally import Tally
from penstock.evals.errors import EvalError
from penstock.evals.files import read
from penstock.evals.mlflow_runs import EXPERIMENT, Told, check_installed, log_run
from penstock.evals.recording import Recording
from penstock.evals.shadow_compare.asking import Asking, Line, ask, lines, recorded_lines
from penstock.evals.shadow_compare.both import Both, asks_both

EXIT_CODES: Final = {
    Verdict.EQUAL: 0,
    Verdict.BETTER: 0,
    Verdict.WORSE: 3,
    Verdict.UNDECIDED: 4,
}
"""1 is a comparison that could not be made, 2 a command line that is wrong."""

Margins = Annotated[
    list[str] | None, typer.Option("--margin", help="CHECK=MARGIN; may be repeated.")
]
Gates = Annotated[
    list[str] | None, typer.Option("--gate", help="Only this check decides; may be repeated.")
]
Alpha = Annotated[float, typer.Option(help="Chance of ever calling an equal candidate worse.")]


@asks_both
def shadow_compare(
    both: Both,
    primary: Annotated[str, typer.Option(help="Address of what serves today.")],
    candidate: Annotated[str, typer.Option(help="Address of what is to be compared with it.")],
    dataset: Annotated[Path | None, typer.Option(help="Questions: JSON Lines.")] = None,
    recording: Annotated[
        Path | None, typer.Option(help="Instead of it: the chats of a recording, as they were.")
    ] = None,
    margin: Margins = None,
    gate: Gates = None,
    guardrail: Annotated[
        list[str] | None, typer.Option(help="NAME=REGEX that no answer may hold; repeatable.")
    ] = None,
    alpha: Alpha = 0.05,
    json_file: Annotated[Path | None, typer.Option("--json", help="File for the report.")] = None,
    markdown: Annotated[Path | None, typer.Option(help="File for the report.")] = None,
    html: Annotated[Path | None, typer.Option(help="File for the report, with plots.")] = None,
    mlflow: options.Mlflow = "",
    experiment: options.Experiment = EXPERIMENT,
) -> None:
    """Whether one endpoint answers worse than another: equal, better, worse, or undecided."""
    with options.told_in_a_line():
        held = _rules(margin, gate, guardrail, alpha)
        if mlflow:
            check_installed()
        questions = _questions(dataset, recording)
        asking = both.asking(primary, candidate)
        found = compare(questions, asking, held)
        _write(json_file, json.dumps(as_dict(found), indent=1) + "\n")
        _write(markdown, as_markdown(found))
        _write(html, as_page(found))
        if mlflow:
            log_run(mlflow, experiment, _told(found, asking))
    typer.echo(as_markdown(found))
    raise typer.Exit(EXIT_CODES[found.verdict])


def compare(questions: Sequence[Line], asking: Asking, held: Rules) -> Report:
    """Asks everything, and judges. Raises `EvalError`."""
    tally = Tally(held)
    for pair in ask(questions, asking):
        tally.add(pair)
    return report(tally, str(asking.primary), str(asking.candidate))


def _told(found: Report, asking: Asking) -> Told:
    settings = {
        "self_permille": asking.self_permille,
        "max_tokens": asking.max_tokens,
        "temperature": asking.temperature,
        "seed": asking.seed,
    }
    name = f"{found.candidate} beside {found.primary}"
    return Told(name, as_dict(found), as_markdown(found), as_page(found), settings)


def log_to_mlflow() -> None:
    """What `penstock shadow export --mlflow` hands over as JSON, as a run."""
    handed = json.load(sys.stdin)
    with options.told_in_a_line():
        run = log_run(handed["uri"], handed["experiment"], Told(**handed["told"]))
    typer.echo(run)


def shadow_plan(
    pairs_a_day: Annotated[
        float, typer.Option(min=0, help="Sessions that will be compared; 0: nobody knows.")
    ],
    margin: Margins = None,
    gate: Gates = None,
    alpha: Alpha = 0.05,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON, for programs.")] = False,
) -> None:
    """What margins can show with so many pairs a day, before any is compared."""
    with options.told_in_a_line():
        promised = plans.plan(_rules(margin, gate, None, alpha), pairs_a_day or math.inf)
        rows = plans.as_rows(promised)
        typer.echo(json.dumps(rows) if as_json else plans.as_markdown(promised))


def shadow_simulation(
    shadows: Annotated[int, typer.Option(min=1, help="Shadows a row.")] = 1000,
    pairs: Annotated[int, typer.Option(min=1, help="Pairs a shadow.")] = 10_000,
    seed: Annotated[int, typer.Option(help="Of the first row; each has the next.")] = 0,
) -> None:
    """How often a shadow's verdict errs, and how many pairs it takes."""
    typer.echo(simulation.HEAD)
    for number, row in enumerate(simulation.rows()):
        typer.echo(simulation.simulate(row, shadows, pairs, seed + number).as_row())


def _rules(
    margins: list[str] | None, gates: list[str] | None, guarded: list[str] | None, alpha: float
) -> Rules:
    try:
        return rules(
            margins=_named(margins, "--margin", float),
            gates=gates,
            guarded=_named(guarded, "--guardrail", str),
            alpha=alpha,
            now=time.monotonic,
        )
    except BadCheck as bad:
        raise EvalError(str(bad)) from bad


Value = TypeVar("Value")


def _named(told: list[str] | None, option: str, read: Callable[[str], Value]) -> dict[str, Value]:
    found = {}
    for each in told or []:
        name, _, value = each.partition("=")
        try:
            found[name] = read(value)
        except ValueError:
            raise EvalError(f"{option} {each}: {value!r} is no number") from None
    return found


def _questions(dataset: Path | None, path: Path | None) -> list[Line]:
    if (dataset is None) == (path is None):
        raise EvalError("name either a --dataset or a --recording")
    if dataset is not None:
        return lines(read(dataset))
    assert path is not None
    with Recording(path) as recording:
        found = recorded_lines(recording.requests())
    if not found:
        raise EvalError(f"{path}: the recording holds no chat")
    if others := len(recording) - len(found):
        typer.echo(f"{others} requests of the recording are no chats: left out", err=True)
    return found


def _write(path: Path | None, text: str) -> None:
    try:
        if path is not None:
            path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise EvalError(f"{path} cannot be written: {error.strerror}") from error
