"""A head's directory is lost while its cluster serves: restored from a backup, it takes over."""

from __future__ import annotations

import asyncio
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.apart import ROOT, Apart
from tests.e2e.sound_traffic import Asker, asking
from tests.e2e.system import PENSTOCK, eventually

LISTS = ("deployments", "tenants", "adapters", "aliases", "access", "tenants/counted/keys")
SECRETS = ("admin.token", "cluster.token")


@pytest.fixture
def system(tmp_path: Path) -> Iterator[Apart]:
    """Head, gateway, agent and two simulated replicas."""
    apart = Apart(tmp_path)
    try:
        apart.begin(ROOT)
        yield apart
    finally:
        apart.destroy()


def penstock(*words: str) -> str:
    """What the command prints; it must end well."""
    ended = subprocess.run([PENSTOCK, *words], capture_output=True, text=True, timeout=60)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def objects(system: Apart) -> dict[str, Any]:
    """What an operator made, without what changes by itself."""
    found = {what: system.admin(what) for what in LISTS}
    found["deployments"] = [each["spec"] for each in found["deployments"]]
    found["tenants/counted/keys"] = [each["id"] for each in found["tenants/counted/keys"]]
    return found


def lose_and_restore(system: Apart, backup: Path) -> None:
    """The head is killed and all its data is gone; a new one begins with the backup."""
    secrets = [(system.head_data / name).read_bytes().strip() for name in SECRETS]
    assert not any(secret in backup.read_bytes() for secret in secrets)
    system.end("head", signal.SIGKILL)
    while system.head_data.exists():  # the gateway writes its snapshot into it meanwhile
        shutil.rmtree(system.head_data, ignore_errors=True)
    penstock("restore", str(backup), "--data-dir", str(system.head_data))
    shutil.copy(system.node_data / "cluster.token", system.head_data)
    system.start_head(ROOT)
    eventually(lambda: epoch(system) == 2, within=30, what="a head that has taken over")
    system.wait_whole()


def epoch(system: Apart) -> int:
    """Of the head that is in command."""
    return int(system.admin("version")["cluster"].split("epoch ")[1].partition(",")[0])


@pytest.mark.processes
async def test_a_head_that_lost_its_data_is_restored_under_traffic(
    system: Apart, tmp_path: Path
) -> None:
    key, backup = await asyncio.to_thread(system.prepare), tmp_path / "monday.backup"
    clients = [Asker("sim", stream, keeps) for stream in (True, False) for keeps in (True, False)]
    clients += [Asker("sim:pirate", True, True), Asker("sim", False, True, key)]
    async with asking(system.base_url, clients) as all_of_them:
        await asyncio.to_thread(all_of_them.some_more)
        before, replicas = objects(system), system.replicas()
        gateway, cluster = system.gateway(), system.admin("version")["cluster"]
        assert epoch(system) == 1
        penstock("backup", str(backup), "--data-dir", str(system.head_data))
        await asyncio.to_thread(system.change, "PUT", "tenants/later", {})
        await asyncio.to_thread(lose_and_restore, system, backup)
        await asyncio.to_thread(all_of_them.some_more)
    assert objects(system) == before
    assert (system.replicas(), system.gateway()) == (replicas, gateway)
    assert system.admin("version")["cluster"].startswith(cluster.partition(",")[0])
