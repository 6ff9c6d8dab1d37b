"""Entry point of the `penstock` command, also as `python -m penstock.control.main`."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import typer

UNWRITTEN = 3
"""The exit code where what there is to say cannot be written: neither that all is well, nor that it
is not."""


def main() -> None:
    """Runs the command line; exits with its code."""
    try:
        try:
            command_line(sys.argv[1] if sys.argv[1:] else "")(prog_name="penstock")
        finally:
            if sys.stdout is not None:  # as where a process is started without one
                sys.stdout.flush()
    except BrokenPipeError:
        os._exit(UNWRITTEN)  # who reads it has had enough, and knows that
    except SystemExit as error:
        # What the library of the command line makes of a pipe that is broken.
        if isinstance(error.__context__, BrokenPipeError):
            os._exit(UNWRITTEN)
        raise
    except OSError as error:
        told = f"penstock: error: the output cannot be written ({error.strerror})"
        sys.stderr.write(f"{told}; what was asked for may be done all the same\n")
        sys.stderr.flush()
        os._exit(UNWRITTEN)  # Python would try to write it once more


def command_line(verb: str) -> typer.Typer:
    """`penstock` with all its verbs, or with one alone whose process stays: what the others import
    takes longer than an agent's own start, and its memory for weeks."""
    if verb not in ("serve", "up", "head", "node"):
        from penstock.control.cli.app import app

        return app
    from penstock.control.cli.root import without_verbs

    alone = without_verbs()
    if verb == "serve":
        from penstock.control.cli.serve import HELP, serve

        alone.command(help=HELP)(serve)
    elif verb == "up":
        from penstock.control.cli.up import HELP, up

        alone.command(help=HELP)(up)
    else:
        from penstock.control.cli import processes

        alone.command()(processes.head if verb == "head" else processes.node)
    return alone


if __name__ == "__main__":
    main()
