"""`penstock backup` and `restore`: the head's store as one file, and back."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from penstock.control.cli.options import DataDir
from penstock.control.cli.outcome import explained
from penstock.control.data_dir import owned, store_path
from penstock.control.settings import DATA_DIR
from penstock.control.store import sqlite_backup
from penstock.control.store.sqlite_backup import Copied


def backup(
    file: Annotated[Path, typer.Argument(help="Where the copy goes; it must not exist yet.")],
    data_dir: DataDir = Path(DATA_DIR),
) -> None:
    """Copy the head's store to a file, on its machine, whether the head runs or not.

    It has deployments, tenants, keys, usage and the audit trail. A whole backup takes along
    adapters, evidence, cluster.token and admin.token of the data directory, copied after it.

    Example: penstock backup /backups/penstock-$(date +%F).db
    """
    with explained("backup"):
        made = sqlite_backup.back_up(store_path(data_dir), file)
        typer.echo(f"{file} has the store of {data_dir}, {_told(made)}")


def restore(
    file: Annotated[Path, typer.Argument(help="What `penstock backup` made.")],
    data_dir: DataDir = Path(DATA_DIR),
) -> None:
    """Put a backup in the place of the store of a head that is stopped.

    What was there is kept beside it. The head is then started once with --take-over.

    Example: penstock restore /backups/penstock-2026-01-31.db
    """
    with explained("restore"), owned(data_dir):
        store = store_path(data_dir)
        found = sqlite_backup.restore(file, store)
        kept = f"; what was there is now {found.kept}" if found.kept else ""
        typer.echo(f"the store of {data_dir} is now {file}, {_told(found)}{kept}")
        typer.echo(
            "start it once with --take-over: `penstock serve --take-over`, or `penstock head`"
        )


def _told(copied: Copied) -> str:
    return (
        f"as of {copied.at[:19]}, revision {copied.revision}" if copied.at else "with nothing in it"
    )
