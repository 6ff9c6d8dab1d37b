"""Room on the disk for what comes from elsewhere: bounded, and gone afterwards."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import mkdtemp
from typing import BinaryIO, Final, Self

from penstock.control.errors import BadAdapter, writing_below

LARGEST_CONFIG: Final = 1 << 20
"""Bytes of an `adapter_config.json`; those that trainers write have one or two thousand."""


@contextmanager
def scratch_directory(below: Path, named: str) -> Iterator[Path]:
    """A new directory for the block. What the block says of files in it is told of `named`, which
    is printable text: nobody knows the directory. Raises `StoreUnavailable`."""
    directory = new_directory(below)
    try:
        yield directory
    except BadAdapter as error:
        raise error_about(named, directory, error) from None
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def new_directory(below: Path) -> Path:
    """An empty directory that is nobody else's. Raises `StoreUnavailable`."""
    with writing_below(below):
        below.mkdir(parents=True, exist_ok=True)
        directory = Path(mkdtemp(dir=below))
    return directory


def error_about(named: str, directory: Path, error: BadAdapter) -> BadAdapter:
    """The error in words that name the source instead of the directory that its files are in."""
    return BadAdapter(str(error).replace(str(directory), named))


class ReceivedFile:
    """A file that is written piece by piece, hashed as it grows, and never grows too large."""

    def __init__(self, path: Path, largest: int, named: str) -> None:
        """Raises `StoreUnavailable`. `named`: what errors call it."""
        self._path, self._largest, self._named = path, largest, named
        self._hash = hashlib.sha256()
        self.size = 0
        with writing_below(path.parent):
            self._file: BinaryIO = path.open("xb", buffering=0)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def sha256(self) -> str:
        """Of what has been written, in hexadecimal digits."""
        return self._hash.hexdigest()

    def will_have(self, size: int) -> None:
        """So many bytes are announced. Raises `BadAdapter` if they are too many."""
        check_size(self._named, size, self._largest)

    def write(self, data: bytes) -> None:
        """Appends. Raises `BadAdapter` for what is too much, `StoreUnavailable`."""
        self.size += len(data)
        check_size(self._named, self.size, self._largest)
        self._hash.update(data)
        rest = memoryview(data)
        with writing_below(self._path.parent):
            while rest:
                rest = rest[self._file.write(rest) :]

    def close(self) -> None:
        """Nothing is written any more; any number of times."""
        self._file.close()


def check_size(named: str, size: int, largest: int) -> None:
    """Raises `BadAdapter` for more bytes than are taken."""
    if size > largest:
        raise BadAdapter(f"{named} has more than {largest} bytes, which is all that is taken")
