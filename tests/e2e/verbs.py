"""`penstock` with a verb in the tests' own process: to start one for each takes a second of CPU."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from typer.testing import CliRunner, Result


def told(*words: str) -> Result:
    """What came of a command line; in a thread, since verbs run loops of their own."""
    from penstock.control.cli.app import app

    with ThreadPoolExecutor(1) as thread:
        return thread.submit(CliRunner().invoke, app, list(words)).result(timeout=60)


def penstock(*words: str) -> str:
    """What it prints; fails unless it ends well."""
    found = told(*words)
    assert found.exit_code == 0, found.output
    return found.stdout
