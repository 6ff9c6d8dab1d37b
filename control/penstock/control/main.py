"""Entry point of the `penstock` command, also as `python -m penstock.control.main`."""

from __future__ import annotations

import os
import sys

from penstock.control.cli.app import app

UNWRITTEN = 3
"""The exit code where what there is to say cannot be written: neither that all is well, nor that it
is not."""


def main() -> None:
    """Runs the command line; exits with its code."""
    try:
        try:
            app(prog_name="penstock")
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


if __name__ == "__main__":
    main()
