"""The `penstock` command without its verbs."""

from __future__ import annotations

from importlib import metadata
from typing import Annotated

import typer
from typer.core import TyperGroup


def without_verbs(group: type[TyperGroup]) -> typer.Typer:
    """What verbs are added to, or which finds them itself."""
    app = typer.Typer(
        name="penstock",
        cls=group,
        help="An OpenAI-compatible gateway for teams that serve their own LLMs.",
        epilog="Start here: penstock serve",
        no_args_is_help=True,
        rich_markup_mode="rich",
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_root)
    return app


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"penstock {metadata.version('penstock')}")
        raise typer.Exit


def _root(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """An OpenAI-compatible gateway for teams that serve their own LLMs."""
