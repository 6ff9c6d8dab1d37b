"""An adapter that a client of the admin API sends: received, checked, gone after the block.

A body of multipart/form-data with the part `manifest`, JSON of the fields in `FIELDS`, and either
the parts `adapter_config.json` and `adapter_model.safetensors` or the part `archive`, a tar of
them, plain or gzip. The disk is written to in threads; of the body no more than a piece is in
memory.
"""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar, TypeVarTuple

from penstock.adapters.shown import shown
from penstock.adapters.version import CONFIG_FILE, CONTENT_FILES, WEIGHTS_FILE, is_digest
from penstock.control.adapter_sources.multipart_parts import ARCHIVE, UploadParts, boundary_of
from penstock.control.adapter_sources.scratch import LARGEST_CONFIG, error_about, new_directory
from penstock.control.adapter_sources.tar_files import unpack
from penstock.control.errors import BadAdapter

FIELDS: Final = ("name", "version", "base", "labels", "sha256")
"""What a manifest may say. Of these only `sha256` is looked at here: of files, by their names."""
_PIECE: Final = 1 << 20
_NAMED: Final = "upload"
T = TypeVar("T")
Ts = TypeVarTuple("Ts")


@dataclass(frozen=True, slots=True)
class Upload:
    """What came: its manifest, as JSON says it, and the directory with its two files."""

    manifest: dict[str, Any]
    directory: Path


@asynccontextmanager
async def received_upload(
    body: AsyncIterator[bytes], content_type: str, *, scratch: Path, max_bytes: int
) -> AsyncIterator[Upload]:
    """Reads the body to its end; the weights have at most `max_bytes`.

    Raises `BadAdapter` with what is wrong, `StoreUnavailable` for our disk, and what `body` raises
    when its client goes away. Nothing stays below `scratch` in any case; what the block says of the
    files is told of the upload.
    """
    boundary = boundary_of(content_type)
    directory = new_directory(scratch)
    try:
        manifest = await _received(body, UploadParts(directory, boundary, max_bytes), max_bytes)
        yield Upload(manifest, directory)
    except BadAdapter as error:
        raise error_about(_NAMED, directory, error) from None
    finally:
        await _in_thread(_remove, directory)


async def _received(
    body: AsyncIterator[bytes], parts: UploadParts, max_bytes: int
) -> dict[str, Any]:
    try:
        async for piece in _gathered(body):
            await _in_thread(parts.feed, piece)
        return await _in_thread(_finished, parts, max_bytes)
    finally:
        await _in_thread(parts.close)


def _finished(parts: UploadParts, max_bytes: int) -> dict[str, Any]:
    """The manifest of an upload that has come whole, whose files are what it says."""
    parts.finish()
    manifest = _parsed(bytes(parts.manifest))
    hashes = parts.sha256
    if ARCHIVE in parts.names:
        archive = parts.directory / ARCHIVE
        largest = {CONFIG_FILE: LARGEST_CONFIG, WEIGHTS_FILE: max_bytes}
        hashes = unpack(archive, parts.directory, largest)
        archive.unlink()
    missing = [name for name in CONTENT_FILES if name not in hashes]
    if missing:
        raise BadAdapter(f"the upload's archive has no {' and no '.join(missing)}")
    for name, told in manifest.get("sha256", {}).items():
        if hashes[name] != told.lower():
            raise BadAdapter(
                f"the upload's {name} has the SHA-256 {hashes[name]}, its manifest says {told}: "
                "send it again"
            )
    return manifest


def _parsed(text: bytes) -> dict[str, Any]:
    """The manifest. Raises `BadAdapter` for what is none."""
    try:
        manifest = json.loads(text)
    except (ValueError, RecursionError) as error:
        why = "too deep" if isinstance(error, RecursionError) else shown(str(error))
        raise BadAdapter(f"the upload's manifest is no JSON: {why}") from None
    if not isinstance(manifest, dict):
        raise BadAdapter(f"the upload's manifest is {shown(manifest)}, not a JSON object")
    for field in manifest:
        if field not in FIELDS:
            raise BadAdapter(
                f"the upload's manifest has a field {shown(field)}: it may have {', '.join(FIELDS)}"
            )
    _check_hashes(manifest.get("sha256", {}))
    return manifest


def _check_hashes(hashes: object) -> None:
    if not isinstance(hashes, Mapping):
        raise BadAdapter(f"sha256 in the upload's manifest is {shown(hashes)}, no JSON object")
    for name, told in hashes.items():
        if name not in CONTENT_FILES or not isinstance(told, str) or not is_digest(told.lower()):
            raise BadAdapter(
                f"sha256 in the upload's manifest says {shown(told)} of {shown(name)}: it says 64 "
                f"hexadecimal digits of {' or '.join(CONTENT_FILES)}"
            )


def _remove(directory: Path) -> None:
    shutil.rmtree(directory, ignore_errors=True)


async def _gathered(body: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The same bytes in pieces that are worth a thread's while."""
    gathered = bytearray()
    async for data in body:
        gathered += data
        if len(gathered) >= _PIECE:
            yield bytes(gathered)
            gathered.clear()
    if gathered:
        yield bytes(gathered)


async def _in_thread(work: Callable[[*Ts], T], *given: *Ts) -> T:
    """Its result. Waits for its end in any case: whoever is cancelled may then clean up."""
    future = asyncio.get_running_loop().run_in_executor(None, work, *given)
    try:
        return await asyncio.shield(future)
    except asyncio.CancelledError:
        await asyncio.wait([future])
        raise
