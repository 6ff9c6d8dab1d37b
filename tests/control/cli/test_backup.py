"""`penstock backup` and `restore`, on a data directory without a head."""

from __future__ import annotations

import asyncio
import fcntl
from pathlib import Path

from typer.testing import CliRunner

from penstock.control.cli.app import app
from penstock.control.store.sqlite import SqliteStore
from penstock.control.store.store import Author, Change, Key
from tests.fakes.control_values import NOON


async def write(path: Path) -> None:
    store = await SqliteStore.open(path)
    await store.apply([Change(Key("thing", "one"), {})], Author("me", "try it"), NOON)
    await store.close()


def test_a_directory_goes_to_a_file_and_back(tmp_path: Path) -> None:
    data, file = tmp_path / "data", tmp_path / "monday"
    asyncio.run(write(data / "penstock.db"))
    run = CliRunner().invoke
    made = run(app, ["backup", str(file), "--data-dir", str(data)])
    told = f"as of {NOON:%Y-%m-%dT%H:%M:%S}, revision 1, adapters: 0\n"
    assert made.stdout == f"{file} has the data of {data}, {told}"
    again = run(app, ["backup", str(file), "--data-dir", str(data)])
    assert (again.exit_code, again.stderr.count("\n")) == (1, 1)
    assert f"{file} exists" in again.stderr
    over = run(app, ["restore", str(file), "--data-dir", str(data)])
    assert (over.exit_code, over.stderr.count("\n")) == (1, 1)
    assert f"{data} is not empty" in over.stderr
    elsewhere = run(app, ["restore", str(file), "--data-dir", str(tmp_path / "new")])
    assert "cluster.token" in elsewhere.stdout
    assert "it takes over by itself" in elsewhere.stdout
    assert (tmp_path / "new" / "penstock.db").exists()


def test_a_store_is_not_replaced_under_a_head_that_runs(tmp_path: Path) -> None:
    asyncio.run(write(tmp_path / "penstock.db"))
    with (tmp_path / "head.pid").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        refused = CliRunner().invoke(app, ["restore", "any.db", "--data-dir", str(tmp_path)])
    assert refused.exit_code == 1
    assert "belongs to a running head" in refused.stderr
