"""Imports without the garbage collector."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def loading() -> Iterator[None]:
    """Keeps the garbage collector from what is imported meanwhile, which is there to stay: it would
    look through it dozens of times, and once more at the process's end."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
