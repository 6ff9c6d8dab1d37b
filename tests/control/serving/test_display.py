"""What a terminal, and what a log file, sees of the progress."""

from __future__ import annotations

import io
import os

from rich.console import Console

from penstock.control.serving.display import Display, ToughConsole


def plain() -> tuple[Display, io.StringIO]:
    out = io.StringIO()
    return Display(Console(file=out, width=40)), out


def test_plain_progress_says_each_thing_once() -> None:
    display, out = plain()
    for seconds in range(5):
        display.progress("loading", seconds=seconds)
    display.progress("warming up", seconds=5)
    assert out.getvalue() == "• loading (0 s)\n• warming up (5 s)\n"


def test_lines_are_never_wrapped_so_that_they_can_be_copied() -> None:
    display, out = plain()
    display.text("curl " + "x" * 100)
    display.done("y" * 100)
    assert out.getvalue() == "curl " + "x" * 100 + "\n✓ " + "y" * 100 + "\n"


def test_markup_in_log_lines_is_left_alone() -> None:
    display, out = plain()
    display.progress("loading", seconds=1, detail="[bold] is no markup")
    assert "[bold] is no markup" in out.getvalue()


def test_a_terminal_gets_one_live_line_that_closes() -> None:
    out = io.StringIO()
    display = Display(Console(file=out, width=60, force_terminal=True))
    display.progress("loading", seconds=1)
    display.progress("loading", seconds=2)
    display.done("loaded")
    display.close()
    assert "loaded" in out.getvalue()
    assert out.getvalue().count("\n✓") <= 1


def test_a_reader_that_went_away_is_no_error() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w", buffering=1) as pipe:
        display = Display(ToughConsole(file=pipe))
        for _ in range(3):
            display.event("nobody hears this")
