"""`evals shadow-simulation`: what the verdict's error rates and sample sizes are."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from penstock.evals.comparison import simulation


def shadow_simulation(
    shadows: Annotated[int, typer.Option(min=1, help="Shadows a row.")] = 1000,
    pairs: Annotated[int, typer.Option(min=1, help="Pairs a shadow.")] = 10_000,
    seed: Annotated[int, typer.Option(help="Of the first row; each has the next.")] = 0,
    markdown: Annotated[Path | None, typer.Option(help="File for the table.")] = None,
) -> None:
    """How often a shadow's verdict errs, and how many pairs it takes."""
    lines = [simulation.HEAD]
    typer.echo(simulation.HEAD)
    for number, row in enumerate(simulation.rows()):
        lines.append(simulation.simulate(row, shadows, pairs, seed + number).as_row())
        typer.echo(lines[-1])
    if markdown is not None:
        markdown.write_text("\n".join(lines) + "\n")


__all__ = ["shadow_simulation"]
