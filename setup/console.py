"""Progress on the terminal, and the one way to fail: what was wrong and what to do, exit code 1."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from pathlib import Path

_beside: list[subprocess.Popen[str]] = []  # the command that a step runs beside others


class SetupError(Exception):
    """Set-up cannot go on. `str()` says what was wrong and what to do."""


def say(text: str) -> None:
    """One line of progress."""
    line = "\r\x1b[2K" if sys.stdout.isatty() else ""  # where another step shows how far it is
    print(f"{line}\N{BULLET} {text}", flush=True)


@contextmanager
def beside(work: Callable[[], None]) -> Iterator[None]:
    """Does `work`, whose commands run without a live line, while the block's steps run. Raises what
    either raises; the commands end where the block fails."""
    with ThreadPoolExecutor(1) as threads:
        working = threads.submit(work)
        try:
            yield
            working.result()
        except BaseException:
            while not working.done():  # its command may be about to begin
                _end_what_is_beside()
                wait([working], timeout=0.1)
            raise


def _end_what_is_beside() -> None:
    for process in _beside:
        with suppress(ProcessLookupError):
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGTERM)


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
    first = threading.current_thread() is threading.main_thread()
    live = first and sys.stdout.isatty()
    if not live:
        say(title)
    with (
        log.open("w") as out,
        subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,  # what asks gets no answer instead of holding set-up for ever
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            env=env,
            cwd=cwd,
            start_new_session=not first,  # a Ctrl-C comes to it by `beside`
        ) as process,
    ):
        if not first:
            _beside[:] = [process]
        assert process.stdout is not None
        for line in process.stdout:
            out.write(line)
            if live and line.strip():
                print(f"\r\x1b[2K\N{BULLET} {title}: {line.strip()[:80]}", end="", flush=True)
    if live:
        print("\r\x1b[2K", end="")
    return process.returncode
