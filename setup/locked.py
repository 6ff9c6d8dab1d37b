"""The text of a lock: pinned requirements, each with the hashes of its files on the lines below it.

    anyio==4.16.0 ; python_version < '3.13' \\
        --hash=sha256:... \\
        --hash=sha256:...
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass

NAME = re.compile(r"[A-Za-z0-9._-]+")
HASH = re.compile(r"--hash=(sha256:[0-9a-f]{64})")


@dataclass(frozen=True)
class Entry:
    """One requirement of a lock."""

    pin: str  # all of the requirement: name, version and marker
    hashes: tuple[str, ...]

    @property
    def name(self) -> str:
        """The package."""
        found = NAME.match(self.pin)
        assert found is not None, f"{self.pin!r} in a lock names no package"
        return found.group()

    @property
    def version(self) -> str:
        """Name and version, without the marker, whichever kind of pin it is."""
        return self.pin.partition(" ;")[0].replace("===", "==")

    def __str__(self) -> str:
        return " \\\n".join([self.pin, *(f"    --hash={one}" for one in self.hashes)]) + "\n"


def parse(text: str) -> list[Entry]:
    """The entries of a lock. Lines that are comments or blank are left out."""
    found: list[Entry] = []
    for block in re.split(r"(?<!\\)\n", text):
        pin = block.split("\\\n")[0].strip()
        if pin and not pin.startswith("#"):
            found.append(Entry(pin, tuple(HASH.findall(block))))
    return found


def render(entries: Collection[Entry]) -> str:
    """The text of a lock of these entries."""
    return "".join(map(str, entries))


def without(text: str, names: Collection[str]) -> str:
    """A lock's text without some packages."""
    return render([entry for entry in parse(text) if entry.name not in names])


def pins(text: str) -> str:
    """What a lock installs: its pins without their hashes, a line each."""
    return "".join(f"{entry.pin}\n" for entry in parse(text))


def with_hashes(text: str, *known: Mapping[str, Collection[str]]) -> str:
    """A lock's text with all hashes that are `known` of its versions (by `Entry.version`)."""
    return render(
        [
            Entry(
                entry.pin,
                tuple(sorted({one for table in known for one in table.get(entry.version, ())})),
            )
            for entry in parse(text)
        ]
    )


def hashes(text: str) -> dict[str, set[str]]:
    """The hashes that a lock holds, by `Entry.version`."""
    table: dict[str, set[str]] = {}
    for entry in parse(text):
        table.setdefault(entry.version, set()).update(entry.hashes)
    return table
