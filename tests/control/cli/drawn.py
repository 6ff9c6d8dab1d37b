"""What a terminal, or a pipe, gets to see."""

from __future__ import annotations

import io

from rich.console import Console

from penstock.control.cli.tables import Part, show


def drawn(*parts: Part, width: int) -> str:
    """On a terminal of this width, without colours."""
    return _shown(
        parts, Console(file=io.StringIO(), width=width, force_terminal=True, color_system=None)
    )


def piped(*parts: Part) -> str:
    """Into a pipe, begun on a narrow terminal."""
    return _shown(parts, Console(file=io.StringIO(), width=40, force_terminal=False))


def _shown(parts: tuple[Part, ...], console: Console) -> str:
    show(*parts, console=console)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()
