"""Progress on the terminal, and the one way to fail: what was wrong and what to do, exit code 1."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path


class SetupError(Exception):
    """Set-up cannot go on. `str()` says what was wrong and what to do."""


def say(text: str) -> None:
    """One line of progress."""
    print(f"\N{BULLET} {text}", flush=True)


def run_step(
    title: str,
    command: Sequence[str],
    log: Path,
    *,
    hint: str,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
) -> None:
    """Runs one command of set-up, its output in `log` and its last line on the terminal.

    Raises `SetupError` with the end of the log and `hint` when the command fails.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    code = run_logged(title, command, log, env, cwd)
    if code != 0:
        tail = "".join(f"    {line}\n" for line in log.read_text().splitlines()[-15:])
        raise SetupError(
            f"{title} failed (exit code {code}).\n{tail}  {hint}\n  The whole output is in {log}."
        )
    say(f"{title}: done in {time.monotonic() - began:.0f} s")


def run_logged(
    title: str,
    command: Sequence[str],
    log: Path,
    env: Mapping[str, str] | None,
    cwd: Path | None,
) -> int:
    """The exit code of a command whose output goes to `log`; its last line on a terminal."""
    live = sys.stdout.isatty()
    if not live:
        say(title)
    with log.open("w") as out:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,  # what asks gets no answer instead of holding set-up for ever
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            env=env,
            cwd=cwd,
        )
        assert process.stdout is not None
        for line in process.stdout:
            out.write(line)
            if live and line.strip():
                print(f"\r\x1b[2K\N{BULLET} {title}: {line.strip()[:80]}", end="", flush=True)
    if live:
        print("\r\x1b[2K", end="")
    return process.wait()
