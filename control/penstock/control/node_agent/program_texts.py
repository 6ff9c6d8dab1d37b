"""The texts of router programs on a node: fetched from the head once, and kept by digest."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from penstock.control.errors import LaunchFailed, NotFound, Unavailable


class ProgramSource(Protocol):
    """Who has the texts that deployments name."""

    async def fetch_program(self, digest: str) -> bytes:
        """The text. Raises `NotFound`, `Unavailable`, and of that kind `TokenRefused`."""


class ProgramTexts:
    """The files of a folder, each named by its digest."""

    def __init__(self, folder: Path, source: ProgramSource) -> None:
        self._folder = folder
        self._source = source

    async def file(self, digest: str) -> Path:
        """Where the text lies. Raises `LaunchFailed` where it is not to be had now."""
        path = self._folder / f"{digest}.py"
        if not await asyncio.to_thread(_is_there, path, digest):
            try:
                text = await self._source.fetch_program(digest)
            except (NotFound, Unavailable) as error:
                raise LaunchFailed(f"its text is not to be had: {error}") from error
            if hashlib.sha256(text).hexdigest() != digest:
                raise LaunchFailed(f"the head sent another text than that of digest {digest}")
            await asyncio.to_thread(_write, path, text)
        return path

    def keep(self, digests: Collection[str]) -> None:
        """Removes all others."""
        with suppress(OSError):
            for path in self._folder.glob("*.py"):
                if path.stem not in digests:
                    path.unlink(missing_ok=True)


def _is_there(path: Path, digest: str) -> bool:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest() == digest
    except OSError:
        return False


def _write(path: Path, text: bytes) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_suffix(".tmp")
        draft.write_bytes(text)
        draft.replace(path)
    except OSError as error:
        raise LaunchFailed(f"its text cannot be written: {path}: {error.strerror}") from error
