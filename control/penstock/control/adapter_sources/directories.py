"""Adapters in directories of this machine: anybody's, and those that ship with Penstock."""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Iterator
from contextlib import suppress
from importlib import resources
from itertools import islice
from pathlib import Path
from typing import Final

from penstock.adapters.shown import shown
from penstock.adapters.version import CONFIG_FILE, CONTENT_FILES
from penstock.control.adapter_sources.scratch import LARGEST_CONFIG, check_size
from penstock.control.errors import BadAdapter

# A name of data, not an import: the head knows no code of the replica's, but both come in one
# package, and what ships with it lies there. That module imports neither torch nor an engine.
_SHIPPING_PACKAGE: Final = "penstock.replica.default_model"
_SHIPPED_MODEL: Final = "penstock-mini"
_MOST_LOOKED_AT: Final = 1000
_MOST_NAMED: Final = 8


def adapter_directory(path: Path, max_bytes: int, named: str) -> Path:
    """`path`, if an adapter's two files are there and no larger than they may be.

    Raises `BadAdapter` with what is there instead.
    """
    try:
        if not stat.S_ISDIR(path.stat().st_mode):
            raise BadAdapter(f"{named} is no directory; name the one that its files are in")
        for name in CONTENT_FILES:
            largest = LARGEST_CONFIG if name == CONFIG_FILE else max_bytes
            _check_file(path / name, largest, named)
    except FileNotFoundError:
        raise BadAdapter(f"{named} is not there, on the machine of the head") from None
    except OSError as error:
        raise BadAdapter(f"{named} cannot be read by the head: {error.strerror}") from None
    except ValueError:  # no path at all: a NUL, a lone surrogate
        raise BadAdapter(f"{named} can be no directory's name") from None
    return path


def shipped_adapters() -> dict[str, Path]:
    """The directories of the adapters that ship with Penstock, by name."""
    place = Path(str(resources.files(_SHIPPING_PACKAGE))) / "weights" / "adapters"
    return {
        f"{_SHIPPED_MODEL}/{path.name}": path
        for path in sorted(place.iterdir())
        if not path.name.startswith(".")
    }


def shipped_models() -> dict[str, Path]:
    """The directories of the models that ship with Penstock, by name."""
    place = Path(str(resources.files(_SHIPPING_PACKAGE)))
    return {_SHIPPED_MODEL: place / "weights" / "model"}


def listed(names: Collection[str]) -> str:
    """Some of many names, for an error."""
    if not names:
        return "nothing"
    some = ", ".join(shown(name) for name in sorted(names)[:_MOST_NAMED])
    return some if len(names) <= _MOST_NAMED else f"{some} and more"


def names_in(directory: Path) -> list[str]:
    """What lies in a directory, a lot of it at most; nothing in one that cannot be read."""
    with suppress(OSError):
        return list(_names(directory))
    return []


def _names(directory: Path) -> Iterator[str]:
    with os.scandir(directory) as entries:
        yield from (entry.name for entry in islice(entries, _MOST_LOOKED_AT))


def _check_file(path: Path, largest: int, named: str) -> None:
    try:
        status = path.stat()
    except FileNotFoundError:
        if path.is_symlink():
            raise BadAdapter(
                f"{path.name} of {named} is a link to {shown(os.readlink(path))}, "
                "which is not there: fetch it again"
            ) from None
        raise BadAdapter(
            f"{named} has no {path.name}, but {listed(names_in(path.parent))}; an adapter is "
            f"{' and '.join(CONTENT_FILES)}, no other format is taken"
        ) from None
    if not stat.S_ISREG(status.st_mode):
        raise BadAdapter(f"{path.name} of {named} is no file")
    check_size(f"{path.name} of {named}", status.st_size, largest)
