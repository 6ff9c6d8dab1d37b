"""Options that several commands have, and what they tell people on the way and at the end."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Annotated

import typer

from penstock.evals.errors import EvalError

PrimaryModel = Annotated[str, typer.Option(help="Default: the only one there.")]
CandidateModel = Annotated[str, typer.Option(help="Default: the only one there.")]
SelfPermille = Annotated[
    int, typer.Option("--self", min=0, max=1000, help="Of the prompts: the primary again.")
]
ApiKey = Annotated[
    str, typer.Option(envvar="PENSTOCK_API_KEY", help="A tenant's key, if there are any.")
]
CandidateKey = Annotated[str, typer.Option(help="The candidate's; else the same.")]
Thresholds = Annotated[
    list[str] | None,
    typer.Option("--thresholds", help="A TOML file, or key=value; may be repeated."),
]
Concurrency = Annotated[int, typer.Option(min=1, help="Prompts asked at a time.")]
Seed = Annotated[int, typer.Option(help="Of the orders, the intervals and the sampling.")]
MaxTokens = Annotated[int, typer.Option(min=1, help="Of each answer.")]
Temperature = Annotated[float, typer.Option(min=0, help="Of the sampling.")]
Timeout = Annotated[float, typer.Option(min=1, help="Seconds for one answer.")]

Mlflow = Annotated[
    str, typer.Option(metavar="URI", help="Leave it as a run there, too; wants penstock[mlflow].")
]
Strict = Annotated[bool, typer.Option("--strict", help="Exit code 1 when the goal is missed.")]
Experiment = Annotated[str, typer.Option(help="Of MLflow; made where there is none.")]


def tell(done: int, of: int) -> None:
    """How far it has come, ten times a run."""
    if done == of or done % max(1, of // 10) == 0:
        typer.echo(f"{done} of {of} prompts asked", err=True)


@contextlib.contextmanager
def told_in_a_line() -> Iterator[None]:
    """Ends a command with exit code 1 where it cannot go on, and says why in a line."""
    try:
        yield
    except EvalError as error:
        typer.echo(f"penstock evals: {error}", err=True)
        raise typer.Exit(1) from error
