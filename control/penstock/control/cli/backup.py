"""`penstock backup` and `restore`: the head's data as one file, and back."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from penstock.control.cli.options import DataDir
from penstock.control.cli.outcome import explained
from penstock.control.data_dir import cluster_token_path, owned
from penstock.control.settings import DATA_DIR
from penstock.control.store import backup as backups
from penstock.control.store.backup import BackedUp


def backup(
    file: Annotated[Path, typer.Argument(help="Where it goes; it must not exist yet.")],
    data_dir: DataDir = Path(DATA_DIR),
) -> None:
    """Write the head's data to one file, on its machine, whether the head runs or not.

    It has deployments, tenants, keys and tokens by their hashes, usage, the audit trail, adapters
    and reports of evaluations; and no secrets: keep cluster.token and secrets elsewhere.

    Example: penstock backup /backups/penstock-$(date +%F).backup
    """
    with explained("backup"):
        made = backups.back_up(data_dir, file)
        typer.echo(f"{file} has the data of {data_dir}, {_told(made)}")


def restore(
    file: Annotated[Path, typer.Argument(help="What `penstock backup` made.")],
    data_dir: DataDir = Path(DATA_DIR),
) -> None:
    """Make the data directory of a head from a backup; it must be empty.

    The head that is started on it takes over what still runs.

    Example: penstock restore /backups/penstock-2026-01-31.backup
    """
    with explained("restore"), owned(data_dir):
        found = backups.restore(file, data_dir)
        typer.echo(f"{data_dir} has now what is in {file}, {_told(found)}")
        typer.echo(
            "where agents or gateways still run, first put a copy of their cluster.token at "
            f"{cluster_token_path(data_dir)}; then start the head: it takes over by itself"
        )


def _told(found: BackedUp) -> str:
    last = f"as of {found.at[:19]}, revision {found.revision}" if found.at else "with nothing in it"
    return f"{last}, adapters: {found.adapters}"
