"""The router programs that ship: files of this package, as much a part of it as its code."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Final

_SUFFIX: Final = ".py"


@cache
def shipped_programs() -> Mapping[str, str]:
    """Their texts by name."""
    return programs_in(files("penstock.control") / "router" / "programs")


def programs_in(directory: Traversable) -> Mapping[str, str]:
    """The texts of a directory's programs, by name; none where there is no such directory."""
    found = directory.iterdir() if directory.is_dir() else ()
    return {
        each.name.removesuffix(_SUFFIX): each.read_text()
        for each in sorted(found, key=lambda it: it.name)
        if each.name.endswith(_SUFFIX) and not each.name.startswith("_")
    }
