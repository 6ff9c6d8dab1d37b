"""Whether Penstock can be set up on this machine at all: asked before anything is fetched.

Runs with the Python of any machine that asks, however old: no newer syntax here.
"""

from __future__ import annotations

import os
import platform
import sys

OLDEST_PYTHON = (3, 11)


def refusal(system: str, *, glibc: bool, python: tuple[int, int]) -> str | None:
    """One line that says why not and what to do; None where it can go on."""
    if system != "Linux":
        name = {"Darwin": "macOS"}.get(system, system or "an unknown system")
        return (
            f"Penstock runs on Linux and this is {name}: "
            "take a container or a virtual machine with Debian 12 or Ubuntu 24.04"
        )
    if not glibc:
        return (
            "this Linux has another C library than glibc (musl, as Alpine has), for which there is "
            "no torch and no vLLM: take Debian 12 or Ubuntu 24.04"
        )
    if python < OLDEST_PYTHON:
        return (
            f"Python {python[0]}.{python[1]} ({sys.executable}) is too old: install Python 3.11 or "
            "later, or name one: make PYTHON=/path/to/python3"
        )
    return None


def has_glibc() -> bool:
    """Whether this Python runs on GNU's C library, for which wheels are made."""
    try:
        return bool(os.confstr("CS_GNU_LIBC_VERSION"))
    except (AttributeError, OSError, ValueError):
        return False


def here() -> str | None:
    """`refusal` of this machine."""
    return refusal(platform.system(), glibc=has_glibc(), python=sys.version_info[:2])
