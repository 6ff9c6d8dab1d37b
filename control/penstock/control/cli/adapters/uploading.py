"""An adapter's files as a multipart body, sent as they are read, with a progress bar."""

from __future__ import annotations

import asyncio
import json
import secrets
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    TaskID,
    TextColumn,
    TransferSpeedColumn,
)

from penstock.adapters.version import CONTENT_FILES
from penstock.control.errors import invalid_setting

PIECE = 1 << 20  # bytes


@dataclass(frozen=True, slots=True)
class Upload:
    """A body to send once."""

    manifest: Mapping[str, Any]
    files: tuple[Path, ...]
    boundary: str
    progress: Progress
    task: TaskID

    @property
    def content_type(self) -> str:
        """Of the body."""
        return f"multipart/form-data; boundary={self.boundary}"

    async def content(self) -> AsyncIterator[bytes]:
        """The body, a MiB at a time. Raises `invalid-setting` where a file cannot be read."""
        yield self._part("manifest", "application/json") + json.dumps(self.manifest).encode()
        for path in self.files:
            yield b"\r\n" + self._part(path.name, "application/octet-stream", path.name)
            try:
                with path.open("rb") as file:
                    while piece := await asyncio.to_thread(file.read, PIECE):
                        yield piece
                        self.progress.advance(self.task, len(piece))
            except OSError as error:
                raise invalid_setting(f"{path} cannot be read: {error.strerror}") from error
        yield f"\r\n--{self.boundary}--\r\n".encode()

    def _part(self, name: str, kind: str, filename: str = "") -> bytes:
        file = f'; filename="{filename}"' if filename else ""
        return (
            f'--{self.boundary}\r\nContent-Disposition: form-data; name="{name}"{file}\r\n'
            f"Content-Type: {kind}\r\n\r\n"
        ).encode()


@contextmanager
def shown_upload(manifest: Mapping[str, Any], directory: Path) -> Iterator[Upload]:
    """The upload of a directory; while it goes, a bar on a terminal's stderr. Raises
    `invalid-setting` where a file is missing."""
    files = tuple(directory / name for name in CONTENT_FILES)
    if missing := [path.name for path in files if not path.is_file()]:
        raise invalid_setting(
            f"{directory} has no {' and no '.join(missing)}: an adapter is a directory with "
            f"{' and '.join(CONTENT_FILES)}"
        )
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
    )
    console = Console(file=sys.stderr)
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as bar:
        task = bar.add_task("uploading", total=sum(path.stat().st_size for path in files))
        yield Upload(manifest, files, secrets.token_hex(16), bar, task)
