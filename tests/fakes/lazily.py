"""Libraries that take seconds to import, once somebody uses them: each worker collects all tests,
and one runs those that need them."""

from __future__ import annotations

import importlib
from typing import Any


class Lazily:
    """A module, imported at its first use."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        if name.startswith(("_", "pytest")):  # pytest looks at all that a test's file has
            raise AttributeError(name)
        return getattr(importlib.import_module(self._name), name)


anthropic: Any = Lazily("anthropic")
torch: Any = Lazily("torch")
