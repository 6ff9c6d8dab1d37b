"""Entry point of the `penstock` command, also as `python -m penstock.control.main`."""

from __future__ import annotations

from penstock.control.cli.app import app


def main() -> None:
    """Runs the command line; exits with its code."""
    app(prog_name="penstock")


if __name__ == "__main__":
    main()
