"""The reports of evaluations in a directory, by the SHA-256 of their bytes.

They are too large for the store's documents, which are all read when a head starts.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Final

from penstock.adapters.version import is_digest
from penstock.control.errors import writing_below

_SUFFIX: Final = ".json"


class EvidenceReports:
    """Of one object: who makes it owns the directory. Calls block."""

    def __init__(self, directory: Path) -> None:
        """`directory` is made when it is first needed."""
        self._directory = directory

    def put(self, report: bytes) -> str:
        """Keeps a report; its SHA-256. Raises `StoreUnavailable`."""
        digest = hashlib.sha256(report).hexdigest()
        with writing_below(self._directory):
            self._directory.mkdir(parents=True, exist_ok=True)
            scratch = self._directory / f"{digest}.part"
            with scratch.open("wb") as file:
                file.write(report)
                file.flush()
                os.fsync(file.fileno())
            scratch.replace(self._path(digest))
        return digest

    def get(self, digest: str) -> bytes | None:
        """A report that is kept, with the bytes that it had; none otherwise."""
        try:
            report = self._path(digest).read_bytes() if is_digest(digest) else b""
        except FileNotFoundError:
            return None
        return report if hashlib.sha256(report).hexdigest() == digest else None

    def keep_only(self, digests: frozenset[str]) -> None:
        """Throws all others away."""
        if not self._directory.is_dir():
            return
        with writing_below(self._directory):
            for path in self._directory.iterdir():
                if path.name.removesuffix(_SUFFIX) not in digests:
                    path.unlink(missing_ok=True)

    def _path(self, digest: str) -> Path:
        return self._directory / f"{digest}{_SUFFIX}"
