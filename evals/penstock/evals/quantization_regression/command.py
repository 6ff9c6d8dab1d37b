"""`evals quantization-regression`: asks, scores, judges, writes."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from penstock.evals import options
from penstock.evals.comparison.gate import EXIT_CODES
from penstock.evals.errors import EvalError
from penstock.evals.files import declared, read, write_reports
from penstock.evals.quantization_regression.document import Run, as_dict
from penstock.evals.quantization_regression.markdown import as_markdown
from penstock.evals.quantization_regression.page import as_page
from penstock.evals.quantization_regression.scoring import score
from penstock.evals.quantization_regression.thresholds import Held, thresholds
from penstock.evals.quantization_regression.verdict import judge
from penstock.evals.shadow_compare.asking import Asking, Line, ask, lines
from penstock.evals.shadow_compare.both import Both, asks_both


@asks_both
def quantization_regression(
    both: Both,
    primary: Annotated[str, typer.Option(help="Address of what serves the base.")],
    dataset: Annotated[Path, typer.Option(help="Prompts, and their slices: JSON Lines.")],
    candidate: Annotated[
        str, typer.Option(help="Address of what serves it quantised; default: the primary's.")
    ] = "",
    threshold: options.Thresholds = None,
    out: Annotated[Path, typer.Option(help="Folder for report.json, .md and .html.")] = Path(
        "build/quantization-regression"
    ),
) -> None:
    """Whether a quantised deployment is worse than its base: pass, fail, or not enough to tell."""
    with options.told_in_a_line():
        held = thresholds(declared(threshold or []))
        data = read(dataset)
        prompts = lines(data)
        held.check({each.slice for each in prompts})
        asking = both.asking(primary, candidate or primary)
        run = measure(prompts, dataset.name, hashlib.sha256(data).hexdigest(), held, asking)
        write_reports(out, as_dict(run), as_markdown(run), as_page(run))
    typer.echo(as_markdown(run))
    typer.echo(f"{out / 'report.html'} shows it.", err=True)
    raise typer.Exit(EXIT_CODES[run.outcome.result])


def measure(prompts: Sequence[Line], name: str, sha256: str, held: Held, asking: Asking) -> Run:
    """Asks both everything, has the primary's texts scored, and judges. Raises `EvalError`."""
    if (asking.primary.url, asking.primary.model) == (asking.candidate.url, asking.candidate.model):
        raise EvalError(f"primary and candidate are both {asking.primary}: nothing to compare")
    pairs = score(prompts, ask(prompts, asking), asking)
    outcome = judge(prompts, pairs, held, asking.seed)
    return Run(datetime.now(UTC), asking, tuple(prompts), name, sha256, tuple(pairs), held, outcome)
