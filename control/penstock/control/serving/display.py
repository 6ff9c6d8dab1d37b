"""What `penstock serve` shows: a live line on a terminal, plain lines everywhere else."""

from __future__ import annotations

import time
from datetime import timedelta

from rich.console import Console
from rich.status import Status
from rich.text import Text

# A plain progress line that says nothing new is repeated this often.
REPEAT_EVERY = timedelta(seconds=10)


class Display:
    """Owns the terminal from its making to `close`."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._status: Status | None = None
        self._shown = ""
        self._shown_at = 0.0

    def done(self, text: str) -> None:
        """A step that is behind us."""
        self.close()
        self._console.print(Text.assemble(("✓ ", "green"), text), soft_wrap=True)

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
            self._console.print(Text(f"• {line}"), soft_wrap=True)

    def event(self, text: str) -> None:
        """Something worth a line while all is running."""
        moment = time.strftime("%H:%M:%S")
        self._console.print(Text.assemble((moment, "dim"), " ", text), soft_wrap=True)

    def text(self, text: str) -> None:
        """Lines exactly as they are, so that they can be copied."""
        self.close()
        self._console.print(Text(text), soft_wrap=True)

    def close(self) -> None:
        """Gives the terminal back."""
        if self._status is not None:
            self._status.stop()
            self._status = None
