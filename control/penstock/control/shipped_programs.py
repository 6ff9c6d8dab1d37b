"""The router programs that ship: files of this package, as much a part of it as its code."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files


@cache
def shipped_programs() -> Mapping[str, str]:
    """Their texts by name."""
    folder = files("penstock.control") / "router" / "programs"
    found = [each for each in folder.iterdir() if each.name.endswith(".py")]
    return {
        each.name.removesuffix(".py"): each.read_text("utf-8")
        for each in sorted(found, key=lambda each: each.name)
    }
