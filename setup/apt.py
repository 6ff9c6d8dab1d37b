"""Runs apt as root, so that it neither asks nor gives up on a machine that is still booting."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterable, Mapping
from pathlib import Path

from console import SetupError, run_step, say

LOCK_SECONDS = 300  # a cloud machine's first boot updates itself for minutes
RETRY_SECONDS = 2
HINT = "Is the network there, and does `apt-get update` work?"
# What apt must know and sudo would take away.
KEPT = (
    "DEBIAN_FRONTEND",
    *(
        name
        for lower in ("http_proxy", "https_proxy", "ftp_proxy", "all_proxy", "no_proxy")
        for name in (lower, lower.upper())
    ),
)


def candidates(names: Iterable[str]) -> set[str]:
    """Those of which the package lists have a version to install. Asked once for all: apt reads its
    lists for half a second each time."""
    policy = subprocess.run(
        ["apt-cache", "policy", *names],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "LC_ALL": "C"},
    ).stdout
    found: set[str] = set()
    name = ""
    for line in policy.splitlines():
        if not line.startswith(" "):
            name = line.removesuffix(":")
        elif line.startswith("  Candidate:") and not line.endswith("(none)"):
            found.add(name)
    return found


def root_prefix(environ: Mapping[str, str], user: int) -> list[str] | None:
    """What a user puts before a command for root: nothing, or sudo; None where neither helps.

    sudo keeps the proxies: apt would otherwise ask the network directly.
    """
    if user == 0:
        return []
    if shutil.which("sudo") is None:
        return None
    return ["sudo", "--preserve-env=" + ",".join(name for name in KEPT if name in environ)]


def environment() -> dict[str, str]:
    """apt's environment: it asks no question, and says in English what goes wrong."""
    return {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C"}


def run(title: str, arguments: list[str], log: Path, user: int) -> None:
    """Runs apt-get as root for a user, and again while another process holds apt's locks.

    Raises `SetupError` when it fails, or the locks are held for longer than `LOCK_SECONDS`.
    """
    env = environment()
    root = root_prefix(env, user)
    assert root is not None, "asked for root where there is no way to it"
    options = ["-o", f"DPkg::Lock::Timeout={LOCK_SECONDS}", "-o", "Acquire::Retries=3"]
    deadline = time.monotonic() + LOCK_SECONDS
    told = False
    while True:
        try:
            run_step(title, [*root, "apt-get", *options, *arguments], log, hint=HINT, env=env)
            return
        except SetupError:
            # The option above covers dpkg's lock alone, not that of the lists.
            if "Could not get lock" not in log.read_text() or time.monotonic() > deadline:
                raise
        if not told:
            say(f"another program holds apt's lock: waiting, at most {LOCK_SECONDS} s")
            told = True
        time.sleep(RETRY_SECONDS)
