"""How verbs end: errors as one line on stderr, and the exit code."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import typer

from penstock.control.errors import PenstockError


@contextmanager
def explained(verb: str, failing: int = 1) -> Iterator[None]:
    """Turns an error that Penstock can explain into one line and an exit code."""
    try:
        yield
    except PenstockError as error:
        _tell(verb, str(error))
        raise typer.Exit(failing) from None
    except UnicodeEncodeError as error:  # bytes of the command line, on their way to the head
        _tell(verb, f"what is given is no text: {error}")
        raise typer.Exit(failing) from None


def _tell(verb: str, error: str) -> None:
    typer.echo(f"penstock {verb}: error: {error}", err=True)


def finish(code: int) -> None:
    """Ends the command with this exit code."""
    raise typer.Exit(code)
