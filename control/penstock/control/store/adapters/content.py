"""The bytes of adapters in a directory, by digest: whole, read-only, or not there at all.

    <directory>/<digest>/adapter_config.json
    <directory>/<digest>/adapter_model.safetensors
    <directory>/incoming/...    what is being taken in or thrown away

What comes in is hashed while it is copied, so a source that changes meanwhile makes an adapter that
is refused or another one, never one that is not what its digest says. A content appears and goes by
one rename, and stays where it is while it is mended, unless its directory takes no files any more.
Calls block on the disk: a thread's work, not the event loop's.
"""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp
from threading import Lock
from typing import BinaryIO, Final

from penstock.adapters.fitness import (
    AdapterFacts,
    FamilyLimits,
    UnfitAdapter,
    check_family,
    facts_of,
)
from penstock.adapters.lora_config import BadLoraConfig, LoraConfig
from penstock.adapters.safetensors import PREFIX_BYTES, BadSafetensors, header_length, read_header
from penstock.adapters.shown import shown
from penstock.adapters.version import (
    CONFIG_FILE,
    WEIGHTS_FILE,
    BadManifest,
    Digest,
    StoredFile,
    digest_of,
    is_digest,
)
from penstock.control.errors import BadAdapter, StoreUnavailable, writing_below

INCOMING: Final = "incoming"
_PIECE: Final = 1 << 20  # bytes copied at a time
_LARGEST_CONFIG: Final = 1 << 20
# What opening or reading a file says of that file, not of the machine: another one in its place
# helps.
_ROTTEN: Final = frozenset(
    {errno.ENOENT, errno.EISDIR, errno.EIO, errno.EACCES, errno.EPERM, errno.ELOOP}
)


@dataclass(frozen=True, slots=True)
class TakenIn:
    """An adapter's content that is stored now, and what it turned out to be."""

    digest: Digest
    files: tuple[StoredFile, ...]
    facts: AdapterFacts
    base_model: str  # as the trainer named it; may be empty


class AdapterContents:
    """The contents below one directory, for any number of threads. Of one object: who makes it owns
    the directory, by a lock or by being alone."""

    def __init__(self, directory: Path) -> None:
        """`directory` is made when it is first needed."""
        self._directory = directory
        self._putting = Lock()

    def throw_away_leftovers(self) -> None:
        """What a process that was killed had begun to take in; before anything else is asked."""
        shutil.rmtree(self._directory / INCOMING, ignore_errors=True)

    def take_in(self, source: Path, limits: FamilyLimits) -> TakenIn:
        """Copies an adapter out of a directory. The same bytes again are stored once. Until it is
        registered, whoever collects what nobody needs has to be told that it is held.

        Raises `BadAdapter` for what cannot be served, with what is wrong where, and
        `StoreUnavailable`; then nothing of it stays.
        """
        with self._scratch() as scratch:
            most = (_LARGEST_CONFIG, limits.max_bytes)
            files = tuple(
                _copy(source / name, scratch / name, largest)
                for name, largest in zip((CONFIG_FILE, WEIGHTS_FILE), most, strict=True)
            )
            with _named(source):
                config = LoraConfig.parse((scratch / CONFIG_FILE).read_bytes())
                facts = _look_into(scratch / WEIGHTS_FILE, config)
                check_family(facts, files[1].size, limits)
            digest = digest_of(files)
            self._put(scratch, digest)
        return TakenIn(digest, files, facts, config.base_model)

    def directory_of(self, digest: Digest) -> Path | None:
        """Where the content lies; none: it is not stored. Raises `StoreUnavailable` where that
        cannot be found out."""
        if not is_digest(digest):
            return None
        path = self._directory / digest
        try:
            return path if stat.S_ISDIR(path.stat().st_mode) else None
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.ELOOP):
                return None
            raise _unreadable(self._directory, error) from error

    def stored(self) -> frozenset[Digest]:
        """All that is stored. Raises `StoreUnavailable` where that cannot be found out."""
        try:
            names = os.listdir(self._directory)
        except FileNotFoundError:
            return frozenset()
        except OSError as error:
            raise _unreadable(self._directory, error) from error
        return frozenset(Digest(name) for name in names if is_digest(name))

    def is_intact(self, digest: Digest) -> bool:
        """Whether the bytes that lie there are still those of the digest; what cannot be read of
        them is not. Raises `StoreUnavailable` where that cannot be found out."""
        directory = self.directory_of(digest)
        if directory is None:
            return False
        try:
            files = tuple(_hashed(directory / name) for name in (CONFIG_FILE, WEIGHTS_FILE))
        except BadManifest:
            return False
        except OSError as error:
            if error.errno in _ROTTEN:
                return False
            raise _unreadable(directory, error) from error
        return digest_of(files) == digest

    def remove(self, digest: Digest) -> None:
        """Throws a content away; one that is not there is gone already."""
        directory = self.directory_of(digest)
        if directory is None:
            return
        with self._scratch() as scratch, self._putting, suppress(FileNotFoundError):
            directory.rename(scratch / digest)

    def _put(self, scratch: Path, digest: Digest) -> None:
        scratch.chmod(0o755)
        _sync(scratch)
        target = self._directory / digest
        with self._putting:
            if not target.is_dir():
                target.unlink(missing_ok=True)
                scratch.rename(target)
                _sync(self._directory)
            elif not self.is_intact(digest):
                # One that has rotted is no reason to refuse good bytes.
                _mend(scratch, target)
                _sync(target)
                _sync(self._directory)

    @contextmanager
    def _scratch(self) -> Iterator[Path]:
        """A directory that is gone afterwards, unless it was renamed."""
        with writing_below(self._directory):
            incoming = self._directory / INCOMING
            incoming.mkdir(parents=True, exist_ok=True)
            scratch = Path(mkdtemp(dir=incoming))
            try:
                yield scratch
            finally:
                shutil.rmtree(scratch, ignore_errors=True)


def _mend(scratch: Path, target: Path) -> None:
    """Puts the good files of `scratch` in the place of those in `target`."""
    moved: list[str] = []
    try:
        for name in (CONFIG_FILE, WEIGHTS_FILE):
            (scratch / name).replace(target / name)
            moved.append(name)
    except OSError:
        for name in moved:
            (target / name).replace(scratch / name)
        _supplant(scratch, target)


def _supplant(scratch: Path, target: Path) -> None:
    """Puts `scratch` itself in the place of a directory that takes no files."""
    old = scratch.with_name(f"{scratch.name}.old")
    with suppress(OSError):
        target.chmod(0o755)  # without the right to write it cannot come below another directory
    target.rename(old)
    try:
        scratch.rename(target)
    finally:
        shutil.rmtree(old, ignore_errors=True)


def _copy(source: Path, target: Path, largest: int) -> StoredFile:
    """Copies and hashes at once. Errors of the source are the caller's, others our disk's."""
    digest, size = hashlib.sha256(), 0
    with _opened(source) as origin, target.open("xb") as copy:
        while piece := _read(origin, source):
            size += len(piece)
            if size > largest:
                raise BadAdapter(
                    f"{_told(source)} has more than {largest} bytes, which is all that is taken"
                )
            digest.update(piece)
            copy.write(piece)
        os.fchmod(copy.fileno(), 0o444)
        copy.flush()
        os.fsync(copy.fileno())
    if size == 0:
        raise BadAdapter(f"{_told(source)} is empty")
    return StoredFile(target.name, digest.hexdigest(), size)


@contextmanager
def _opened(source: Path) -> Iterator[BinaryIO]:
    """The file, if it is one: a pipe would never end, and is not waited for."""
    try:
        descriptor = os.open(source, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", error)
        raise BadAdapter(
            f"{_told(source)} cannot be read: {why}; an adapter is a directory with "
            f"{CONFIG_FILE} and {WEIGHTS_FILE}, no other format is taken"
        ) from None
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise BadAdapter(f"{_told(source)} is no file")
        with open(descriptor, "rb", buffering=0, closefd=False) as file:
            yield file
    finally:
        os.close(descriptor)


def _read(file: BinaryIO, source: Path) -> bytes:
    try:
        return file.read(_PIECE)
    except OSError as error:
        raise BadAdapter(f"{_told(source)} cannot be read: {error.strerror}") from None


def _look_into(weights: Path, config: LoraConfig) -> AdapterFacts:
    with weights.open("rb") as file:
        length = header_length(file.read(PREFIX_BYTES))
        data_bytes = weights.stat().st_size - PREFIX_BYTES - length
        return facts_of(config, read_header(file.read(length), data_bytes))


@contextmanager
def _named(source: Path) -> Iterator[None]:
    """Says in which file it is what is wrong."""
    try:
        yield
    except BadLoraConfig as error:
        raise BadAdapter(f"{_told(source / CONFIG_FILE)}: {error}") from None
    except BadSafetensors as error:
        raise BadAdapter(f"{_told(source / WEIGHTS_FILE)}: {error}") from None
    except UnfitAdapter as error:
        raise BadAdapter(f"{_told(source)}: {error}") from None


def _hashed(path: Path) -> StoredFile:
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256")
        return StoredFile(path.name, digest.hexdigest(), os.fstat(file.fileno()).st_size)


def _unreadable(directory: Path, error: OSError) -> StoreUnavailable:
    return StoreUnavailable(f"cannot read {directory}: {error.strerror}; check its disk and rights")


def _told(path: Path) -> str:
    return shown(str(path))


def _sync(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
