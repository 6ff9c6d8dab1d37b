"""What `penstock serve` shows: a live line on a terminal, plain lines everywhere else."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from datetime import timedelta

from rich.console import Console
from rich.status import Status
from rich.text import Text

# A plain progress line that says nothing new is repeated this often.
REPEAT_EVERY = timedelta(seconds=10)


class ToughConsole(Console):
    """A console that may lose its terminal or its pipe: stopping everything is still to be done."""

    def on_broken_pipe(self) -> None:
        """Instead of ending the process: what is still written goes nowhere."""
        self.quiet = True
        with suppress(OSError):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self.file.fileno())
            os.close(nowhere)


class Display:
    """Owns the terminal from its making to `close`. Nothing here raises when nobody listens."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._status: Status | None = None
        self._shown = ""
        self._shown_at = 0.0

    def done(self, text: str) -> None:
        """A step that is behind us."""
        self.close()
        self._print(Text.assemble(("✓ ", "green"), text))

    def progress(self, what: str, *, seconds: float, detail: str = "") -> None:
        """What is being waited for, since when, and what the log says meanwhile."""
        line = f"{what} ({seconds:.0f} s)" + (f" · {detail}" if detail else "")
        if self._console.is_terminal:
            if self._status is None:
                self._status = self._console.status("")
                self._status.start()
            self._status.update(Text(line, overflow="ellipsis", no_wrap=True))
            return
        now = time.monotonic()
        if what != self._shown or now - self._shown_at > REPEAT_EVERY.total_seconds():
            self._shown, self._shown_at = what, now
            self._print(Text(f"• {line}"))

    def event(self, text: str) -> None:
        """Something worth a line while all is running."""
        moment = time.strftime("%H:%M:%S")
        self._print(Text.assemble((moment, "dim"), " ", text))

    def text(self, text: str) -> None:
        """Lines exactly as they are, so that they can be copied."""
        self.close()
        self._print(Text(text))

    def close(self) -> None:
        """Gives the terminal back."""
        status, self._status = self._status, None
        if status is not None:
            with suppress(OSError):
                status.stop()

    def _print(self, text: Text) -> None:
        try:
            self._console.print(text, soft_wrap=True)
        except OSError:  # the terminal was closed
            self._console.on_broken_pipe()
