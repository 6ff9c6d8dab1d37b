"""Accelerators by the names that people use, and the memory that their drivers tell of."""

from __future__ import annotations

from typing import Final

GIB: Final = 1 << 30

_GIB_OF: Final = {
    "t4": 14.56,
    "l4": 22.03,
    "a10g": 22.06,
    "rtx-4090": 23.52,
    "a100-40": 39.39,
    "l40s": 44.39,
    "a6000": 47.40,
    "a100-80": 79.15,
    "h100": 79.18,
    "h200": 139.80,
    "b200": 178.35,
}


def gpu_bytes(name: str) -> int:
    """Of one; 0: its name is not known."""
    return int(_GIB_OF.get(name.lower(), 0) * GIB)


def gpu_names() -> tuple[str, ...]:
    """All that are known, the smallest first."""
    return tuple(_GIB_OF)
