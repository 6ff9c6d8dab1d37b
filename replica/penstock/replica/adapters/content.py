"""The bytes of an adapter in a directory: where it is, and what they hash to. Reads files."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Final

from penstock.adapters.version import CONTENT_FILES, Digest, StoredFile, digest_of
from penstock.replica.adapters.values import Contents
from penstock.replica.default_model import shipped
from penstock.replica.values import AdapterSource, CannotLoad, EngineError

_PIECE: Final = 1 << 20


async def directory_of(adapter: AdapterSource, contents: Contents | None) -> Path:
    """Where the adapter's bytes are. Raises `EngineError`."""
    if not adapter.source:
        if contents is None:
            raise EngineError(
                f"adapter {adapter.name}: there is no node agent to ask for its bytes"
            )
        return await contents.directory(adapter.digest)
    directory = shipped(adapter.source) or Path(adapter.source)
    if not directory.is_absolute():
        raise CannotLoad(
            f"adapter {adapter.name}: {adapter.source} is neither an absolute path nor a shipped "
            "name"
        )
    return directory


def content_digest(directory: Path) -> Digest:
    """The digest of the content in a directory, read whole: what is read next comes from the page
    cache. Raises `OSError`."""
    return digest_of(tuple(_hashed(directory / name) for name in CONTENT_FILES))


def _hashed(path: Path) -> StoredFile:
    digest, size = hashlib.sha256(), 0
    with path.open("rb") as file:
        while piece := file.read(_PIECE):
            digest.update(piece)
            size += len(piece)
    return StoredFile(path.name, digest.hexdigest(), size)
