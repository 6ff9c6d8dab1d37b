"""An adapter: an immutable LoRA version, named `name@version`.

A name without its version is an alias, which may move; what is here never does, so an answer can
always say exactly which weights made it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NewType

_PART = r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}"
_REF = re.compile(f"({_PART})@({_PART})")

BaseModelFamily = NewType("BaseModelFamily", str)
"""What adapters are made for: all models of one family have the same shapes, "penstock-mini"."""


class BadAdapterRef(ValueError):
    """A text that is not `name@version`."""


@dataclass(frozen=True, slots=True, order=True)
class AdapterRef:
    """The name of one adapter version, as engines, logs and the wire spell it."""

    name: str
    version: str

    def __post_init__(self) -> None:
        """Refuses parts that could not be printed and parsed again."""
        parts = (self.name, self.version)
        if not all(isinstance(part, str) for part in parts) or not _REF.fullmatch(str(self)):
            raise BadAdapterRef(
                f"adapter is {str(self)!r}: it must be name@version, such as pirate@1, "
                "of letters, digits, . _ -"
            )

    @classmethod
    def parse(cls, text: str) -> AdapterRef:
        """Reads `name@version`. Raises `BadAdapterRef`."""
        name, _, version = text.partition("@")
        return cls(name, version)

    def __str__(self) -> str:
        """Prints `name@version`."""
        return f"{self.name}@{self.version}"
