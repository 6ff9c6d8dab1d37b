"""Copies of the store's file: made while a head writes to it, and put in its place again.

The newest of a store lies in its `-wal` file while it is open, so a copy of the file alone is old
or empty, and one that an older `-wal` file is left beside is damaged.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path

from penstock.control.errors import CannotStart, invalid_setting
from penstock.control.store.sqlite import SCHEMA_VERSION

REPLACED = ".replaced"
# In the order in which they go: a store without its newest is one, what is newest alone is none.
BESIDE = ("-wal", "-shm", "")


@dataclass(frozen=True, slots=True)
class Copied:
    """What a copy holds."""

    revision: int
    at: str  # when the last change in it was made; empty: none was
    kept: Path | None = None  # what was in the place that it was restored to


def back_up(store: Path, target: Path) -> Copied:
    """Copies a store, whether a head runs on it or not, to a file that needs none beside it. Raises
    `invalid-setting`."""
    if not store.is_file():
        raise invalid_setting(f"there is no store {store}: name its head's directory by --data-dir")
    if target.exists():
        raise invalid_setting(f"{target} exists, nothing is written: name another file")
    return _copy(store, target)


def restore(copy: Path, store: Path) -> Copied:
    """Puts a copy in a store's place, where no head runs; what was there is kept as `Copied.kept`,
    beside what earlier ones kept. Raises `invalid-setting`."""
    if not copy.is_file():
        raise invalid_setting(f"there is no backup {copy}")
    draft = store.with_name(store.name + ".restored")
    draft.unlink(missing_ok=True)
    copied = _copy(copy, draft)
    kept = _unused(store)
    had = store.exists()
    for suffix in BESIDE:
        with suppress(FileNotFoundError):
            store.with_name(store.name + suffix).rename(f"{kept}{suffix}")
    draft.rename(store)
    return replace(copied, kept=kept) if had else copied


def _unused(store: Path) -> Path:
    """A name beside it under which nothing is kept."""
    names = (store.with_name(f"{store.name}{REPLACED}{n or ''}") for n in count())
    return next(n for n in names if not any(Path(f"{n}{suffix}").exists() for suffix in BESIDE))


def _copy(source: Path, target: Path) -> Copied:
    draft = target.with_name(target.name + ".tmp")
    try:
        os.close(os.open(draft, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600))
        with (
            closing(sqlite3.connect(f"{source.absolute().as_uri()}?mode=rw", uri=True)) as old,
            closing(sqlite3.connect(draft)) as new,
        ):
            old.backup(new)
            new.execute("PRAGMA journal_mode = DELETE")  # no file beside it
            found = _checked(new, source)
        draft.rename(target)
    except (OSError, sqlite3.Error) as error:
        raise CannotStart(f"{source} cannot be copied to {target}: {error}") from error
    finally:
        with suppress(OSError):
            draft.unlink(missing_ok=True)
    return found


def _checked(db: sqlite3.Connection, source: Path) -> Copied:
    """Raises `invalid-setting` for what is no store, or a damaged one."""
    (schema,) = db.execute("PRAGMA user_version").fetchone()
    if schema != SCHEMA_VERSION:
        known = f"format {schema}, this version knows {SCHEMA_VERSION}" if schema else "nothing"
        raise invalid_setting(f"{source} is no store of Penstock that can be used: it has {known}")
    found = [row[0] for row in db.execute("PRAGMA quick_check")]
    if found != ["ok"]:
        raise invalid_setting(f"{source} is damaged: {'; '.join(found[:3])}")
    last = "SELECT version, at FROM transactions ORDER BY version DESC LIMIT 1"
    return Copied(*(db.execute(last).fetchone() or (0, "")))
