"""A head's data as one file: its store, the contents of adapters, reports of evaluations.

The file is a tar whose last member lists all others by SHA-256: one that ends too early has none.
No secrets are in it: of keys and tokens the store has hashes alone, and what processes prove each
other with, `cluster.token` and what lies in `secrets`, is not taken along.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import shutil
import sqlite3
import tarfile
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO

from penstock.control.data_dir import adapters_path, evidence_path, store_path
from penstock.control.errors import CannotStart, PenstockError, invalid_setting
from penstock.control.store import sqlite_formats
from penstock.control.store.store import IDENTITY

FORMAT = 1  # of the file; that of the store in it is its own
LIST = "backup.json"
_PLAIN = b"SQLite format 3\0"
_RESTORED = (
    "UPDATE documents SET document = json_set(document, '$.restored', json('true'))"
    " WHERE kind = ? AND name = ?"
)
_DIGEST = "[0-9a-f]{64}"
_MEMBER = re.compile(
    rf"penstock\.db|evidence/{_DIGEST}\.json"
    rf"|adapters/{_DIGEST}/(adapter_config\.json|adapter_model\.safetensors)"
)


@dataclass(frozen=True, slots=True)
class BackedUp:
    """What a backup holds."""

    revision: int
    at: str  # when the last change in it was made; empty: none was
    adapters: int


def back_up(data_dir: Path, target: Path) -> BackedUp:
    """Writes the backup of a data directory, whether a head runs on it or not. Raises
    `invalid-setting` and CannotStart; then there is no file."""
    store = store_path(data_dir)
    if not store.is_file():
        raise invalid_setting(f"there is no store {store}: name its head's directory by --data-dir")
    if target.exists():
        raise invalid_setting(f"{target} exists, nothing is written: name another file")
    draft = target.with_name(target.name + ".tmp")
    with _failing(f"{data_dir} cannot be backed up to {target}"):
        try:
            with os.fdopen(
                os.open(draft, os.O_CREAT | os.O_TRUNC | os.O_RDWR, 0o600), "wb"
            ) as file:
                made = _write(data_dir, store, file, Path(f"{draft}.db"))
                file.flush()
                os.fsync(file.fileno())
            draft.rename(target)
        finally:
            draft.unlink(missing_ok=True)
    return made


def restore(backup: Path, data_dir: Path) -> BackedUp:
    """Makes the data directory of a head from a backup. Raises `invalid-setting` where the
    directory has anything in it, and for what is no whole backup; then nothing is there."""
    if not backup.is_file():
        raise invalid_setting(f"there is no backup {backup}")
    if there := sorted(each.name for each in data_dir.iterdir() if each.name != "head.pid"):
        raise invalid_setting(
            f"the data directory {data_dir} is not empty, it has {', '.join(there[:5])}: "
            "put it away, or name another --data-dir"
        )
    with (
        _failing(f"{backup} cannot be restored to {data_dir}"),
        TemporaryDirectory(dir=data_dir) as folder,
    ):
        draft = Path(folder)
        _unpack(backup, draft)
        with closing(sqlite3.connect(store_path(draft))) as db:
            found = _looked_at(db, backup, draft)
            with db:  # its first head takes over what runs, under an epoch above all others
                db.execute(_RESTORED, IDENTITY)
        for each in sorted(draft.iterdir(), key=lambda each: each == store_path(draft)):
            each.rename(data_dir / each.name)
    return found


def _write(data_dir: Path, store: Path, file: IO[bytes], copy: Path) -> BackedUp:
    try:
        sqlite_formats.copied(store, copy, lambda db: _check(db, store))
        with closing(sqlite3.connect(copy)) as db:
            found = _looked_at(db, store, data_dir)
        with tarfile.open(fileobj=file, mode="w") as tar:
            digests = {name: _add(tar, name, path) for name, path in _members(data_dir, copy)}
            text = json.dumps({"format": FORMAT, "files": digests}, indent=1).encode()
            member = tarfile.TarInfo(LIST)
            member.size = len(text)
            tar.addfile(member, io.BytesIO(text))
    finally:
        copy.unlink(missing_ok=True)
    return found


def _members(data_dir: Path, store: Path) -> Iterator[tuple[str, Path]]:
    """What is taken along, the store first: bytes come before the document that names them."""
    yield store_path(data_dir).name, store
    for folder in (adapters_path(data_dir), evidence_path(data_dir)):
        for path in sorted(folder.rglob("*")):
            name = path.relative_to(data_dir).as_posix()
            if _MEMBER.fullmatch(name):
                yield name, path


def _add(tar: tarfile.TarFile, name: str, path: Path) -> str:
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        file.seek(0)
        member = tarfile.TarInfo(name)
        member.size = os.fstat(file.fileno()).st_size
        tar.addfile(member, file)
    return digest


def _unpack(backup: Path, folder: Path) -> None:
    """Raises `invalid-setting` for anything but what `back_up` writes, or the version before, which
    wrote the store alone."""
    with backup.open("rb") as file:
        plain = file.read(len(_PLAIN)) == _PLAIN
    if plain:
        return sqlite_formats.copied(backup, store_path(folder), lambda _: None)
    try:
        with tarfile.open(backup, mode="r:") as tar:
            found = dict(_taken_out(tar, folder))
    except tarfile.TarError as error:
        raise _no_backup(backup, f"cannot be read: {error}") from error
    try:
        listed = json.loads(found.pop(LIST, "null"))
        version, digests = listed["format"], dict(listed["files"])
    except (ValueError, TypeError, KeyError):
        raise _no_backup(backup, "is not whole: it ends before its list") from None
    if version != FORMAT:
        raise invalid_setting(
            f"{backup} has format {version}, this version reads {FORMAT}: restore it with the "
            "Penstock that made it, or a later one"
        )
    if wrong := _wrong(digests, found):
        raise _no_backup(backup, f"is damaged: {', '.join(wrong[:3])}")


def _taken_out(tar: tarfile.TarFile, folder: Path) -> Iterator[tuple[str, str]]:
    """Each member's name, and its digest, or the text of the list."""
    for member in tar:
        source = tar.extractfile(member) if member.isfile() else None
        if member.name == LIST and source is not None:
            yield LIST, source.read().decode(errors="replace")
        elif source is None or not _MEMBER.fullmatch(member.name):
            yield member.name, ""
        else:
            path = folder / member.name
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("x+b") as file:
                shutil.copyfileobj(source, file)
                file.flush()
                os.fsync(file.fileno())
                file.seek(0)
                yield member.name, hashlib.file_digest(file, "sha256").hexdigest()
            path.chmod(0o600 if member.name == "penstock.db" else 0o444)


def _wrong(listed: Mapping[str, str], found: Mapping[str, str]) -> list[str]:
    names = {*listed, *found}
    return sorted(name for name in names if not found.get(name) or listed.get(name) != found[name])


def _looked_at(db: sqlite3.Connection, source: Path, data_dir: Path) -> BackedUp:
    _check(db, source)
    last = "SELECT version, at FROM transactions ORDER BY version DESC LIMIT 1"
    revision, at = db.execute(last).fetchone() or (0, "")
    folder = adapters_path(data_dir)
    names = folder.iterdir() if folder.is_dir() else ()
    return BackedUp(revision, at, sum(1 for each in names if re.fullmatch(_DIGEST, each.name)))


def _check(db: sqlite3.Connection, source: Path) -> None:
    """Raises `invalid-setting` for what is no store, or one that cannot be used."""
    if sqlite_formats.found(db) == 0:
        raise invalid_setting(f"{source} has no store of Penstock")
    if refused := sqlite_formats.refusal(db):
        raise invalid_setting(f"the store of {source} {refused}")
    found = [row[0] for row in db.execute("PRAGMA quick_check")]
    if found != ["ok"]:
        raise invalid_setting(f"the store of {source} is damaged: {'; '.join(found[:3])}")


def _no_backup(backup: Path, why: str) -> PenstockError:
    return invalid_setting(f"{backup} {why}: use another backup")


@contextmanager
def _failing(what: str) -> Iterator[None]:
    try:
        yield
    except (OSError, sqlite3.Error) as error:
        raise CannotStart(f"{what}: {error}") from error
