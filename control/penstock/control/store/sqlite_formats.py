"""The formats of the store's file by number, and what brings one to the next, after a copy.

`PRAGMA user_version` is the least that a version has to know to read the file; the table `formats`
has what the file was brought to since, and by whom. A step that only adds what an older version
does not look at leaves the first as it is, so that an upgrade can be taken back.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from importlib import metadata
from pathlib import Path

from penstock.control.errors import CannotStart
from penstock.control.store import sqlite_events

READABLE = 4  # what `tests/upgrade/base_store.sql` has
_FORMATS = "CREATE TABLE formats (number INTEGER PRIMARY KEY, penstock TEXT NOT NULL);"
# The format that each of them brings a file to, the one before it being there.
STEPS = {5: _FORMATS + sqlite_events.TABLES}
FORMAT = max(STEPS)
OLDER_READ_BY = "the Penstock of commit 9f5754f"  # what has an older format
# Documents as only such versions left them, which that one changed when it began.
_OLDER = """
SELECT kind || ' ' || name FROM documents WHERE
    kind = 'tenant' AND json_extract(document, '$.degrade') IS NOT NULL
        AND json_extract(document, '$.fallbacks') IS NULL
    OR kind = 'deployment' AND json_array_length(document, '$.bindings') > 0
"""


def found(db: sqlite3.Connection) -> int:
    """The format of a file; 0: it is empty."""
    (least,) = db.execute("PRAGMA user_version").fetchone()
    newest = _newest(db)
    return max(least, newest[0]) if newest else int(least)


def refusal(db: sqlite3.Connection) -> str:
    """Why this version cannot use the file, and which can; empty: it can."""
    (least,) = db.execute("PRAGMA user_version").fetchone()
    if least > FORMAT:
        newest = _newest(db)
        by = f"Penstock {newest[1]}, which wrote it," if newest else "the Penstock that wrote it"
        return f"has format {least}, this version reads up to {FORMAT}: start {by} or a later one"
    if least < READABLE or (found(db) < FORMAT and (old := db.execute(_OLDER).fetchone())):
        what = f"format {least}" if least < READABLE else f"{old[0]} as an older version left it"
        return f"has {what}: start {OLDER_READ_BY} once with it, and then this one"
    return ""


def make(db: sqlite3.Connection, tables: str) -> None:
    """An empty file becomes one of today's format; `tables`: those of `READABLE`."""
    db.executescript(
        f"BEGIN; {tables} PRAGMA user_version = {READABLE}; {_steps(READABLE)} COMMIT;"
    )


def bring(db: sqlite3.Connection, path: Path) -> None:
    """Brings a file that is of an older format to today's, after a copy of it was made."""
    before = found(db)
    if before >= FORMAT:
        return
    copied(path, path.with_name(f"{path.name}.format-{before}"), lambda _: None)
    db.executescript(f"BEGIN IMMEDIATE; {_steps(before)} COMMIT;")


def copied(source: Path, target: Path, check: Callable[[sqlite3.Connection], None]) -> None:
    """Copies a store, of whatever format and while it is written to, to a file that needs none
    beside it and that nobody else reads; in place of what is there. Raises CannotStart."""
    draft = target.with_name(target.name + ".tmp")
    try:
        os.close(os.open(draft, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600))
        with (
            closing(sqlite3.connect(f"{source.absolute().as_uri()}?mode=rw", uri=True)) as old,
            closing(sqlite3.connect(draft)) as new,
        ):
            old.backup(new)
            new.execute("PRAGMA journal_mode = DELETE")  # no file beside it
            check(new)
        draft.rename(target)
    except (OSError, sqlite3.Error) as error:
        raise CannotStart(f"{source} cannot be copied to {target}: {error}") from error
    finally:
        with suppress(OSError):
            draft.unlink(missing_ok=True)


def _newest(db: sqlite3.Connection) -> tuple[int, str] | None:
    if not db.execute("SELECT 1 FROM sqlite_master WHERE name = 'formats'").fetchone():
        return None
    row: tuple[int, str] | None = db.execute(
        "SELECT number, penstock FROM formats ORDER BY number DESC LIMIT 1"
    ).fetchone()
    return row


def _steps(before: int) -> str:
    """What is still to be done to a file of this format."""
    by = metadata.version("penstock")
    return " ".join(
        f"{step} INSERT INTO formats VALUES ({number}, '{by}');"
        for number, step in sorted(STEPS.items())
        if number > before
    )
