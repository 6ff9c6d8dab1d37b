"""penstock-mini: the chat model that comes with Penstock, and where its weights lie.

This module knows paths and nothing else, so that anybody may import it without torch. `grammar/`
holds what the model says, `make.py` trains it from there; README.md tells how.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

WEIGHTS: Final = Path(__file__).parent / "weights"
"""Where the shipped weights lie: the model, and a directory for each adapter."""

_SHIPPED: Final = {
    "penstock-mini": "model",
    "penstock-mini/pirate": "adapters/pirate",
    "penstock-mini/json": "adapters/json",
}


def shipped(name: str) -> Path | None:
    """The directory of a model or adapter that comes with Penstock; None for any other name."""
    place = _SHIPPED.get(name)
    return WEIGHTS / place if place else None


__all__ = ["WEIGHTS", "shipped"]
