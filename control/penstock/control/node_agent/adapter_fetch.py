"""An adapter as it comes from the head, in pieces, written into a directory of its own.

Nothing that was not asked for is ever kept: the bytes are hashed as they come, and what they make
is compared with the digest before anybody else sees them.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncGenerator, Mapping
from contextlib import ExitStack, aclosing
from datetime import timedelta
from pathlib import Path
from typing import BinaryIO, Final, Protocol

from penstock.adapters.shown import shown
from penstock.adapters.version import CONTENT_FILES, BadManifest, Digest, StoredFile, digest_of
from penstock.control.errors import Unavailable
from penstock.v1 import nodes_pb2

# From asking to the first piece, and from each piece to the next.
PATIENCE: Final = timedelta(seconds=10)


class AdapterSource(Protocol):
    """Who has the adapters that are registered."""

    def fetch_adapter(self, digest: str) -> AsyncGenerator[nodes_pb2.AdapterPiece, None]:
        """The content's pieces, in order. Raises `NotFound`, `Unavailable`, and of that kind
        `TokenRefused`."""


async def receive(
    source: AdapterSource,
    digest: Digest,
    into: Path,
    largest: Mapping[str, int],
    patience: timedelta = PATIENCE,
) -> None:
    """Writes the content with this digest into an empty directory. `largest`: of each file, bytes.

    Raises what the source does, `Unavailable` where it sent something else, too much or nothing for
    a while, and OSError where it cannot be written; then the directory holds some of it.
    """
    files: list[_File] = []
    async with aclosing(source.fetch_adapter(digest)) as pieces:
        with ExitStack() as opened:
            while (piece := await _next(pieces, patience)) is not None:
                if piece.file:
                    files.append(_begun(piece.file, files, into, largest))
                    opened.callback(files[-1].close)
                if not files or not piece.data:
                    raise _other(digest, "a piece that belongs to no file or holds nothing")
                await asyncio.to_thread(files[-1].take, piece.data)
    try:
        received = digest_of(tuple(file.stored() for file in files))
    except BadManifest as error:
        raise _other(digest, str(error)) from None
    if received != digest:
        raise _other(digest, f"the content {received}")


class _File:
    """One file that is being written; `take` blocks on the disk."""

    def __init__(self, path: Path, largest: int) -> None:
        self._path = path
        self._largest = largest
        self._size = 0
        self._sha256 = hashlib.sha256()
        self._file: BinaryIO = path.open("xb")

    @property
    def name(self) -> str:
        return self._path.name

    def take(self, data: bytes) -> None:
        self._size += len(data)
        if self._size > self._largest:
            raise Unavailable(
                f"the head sent more than {self._largest} bytes of {self.name}, which is all that"
                " is taken"
            )
        self._sha256.update(data)
        self._file.write(data)

    def close(self) -> None:
        self._file.close()

    def stored(self) -> StoredFile:
        return StoredFile(self.name, self._sha256.hexdigest(), self._size)


def _begun(name: str, files: list[_File], into: Path, largest: Mapping[str, int]) -> _File:
    if name not in CONTENT_FILES or any(file.name == name for file in files):
        raise Unavailable(f"the head sent a file {shown(name)}, an adapter has {CONTENT_FILES}")
    return _File(into / name, largest[name])


async def _next(
    pieces: AsyncGenerator[nodes_pb2.AdapterPiece, None], patience: timedelta
) -> nodes_pb2.AdapterPiece | None:
    """The next piece; None at the end."""
    try:
        async with asyncio.timeout(patience.total_seconds()):
            return await anext(pieces, None)
    except TimeoutError:
        seconds = patience.total_seconds()
        raise Unavailable(f"the head sent nothing of the adapter for {seconds:g} s") from None


def _other(digest: str, what: str) -> Unavailable:
    return Unavailable(f"the head was asked for the adapter {digest} and sent {what}: refused")
