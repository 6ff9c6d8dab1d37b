"""Facts about the machine and the revision, without which figures mean nothing."""

from __future__ import annotations

import os
import platform
import subprocess
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Facts:
    """Where and of what a run was made."""

    cores: int
    cpu: str
    memory_gib: float
    kernel: str
    load_average: tuple[float, float, float]  # when the run began
    revision: str  # "unknown" outside a git checkout
    changed: bool  # files differ from the revision


def facts(checkout: Path) -> Facts:
    """The facts as they are now."""
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return Facts(
        cores=len(os.sched_getaffinity(0)),
        cpu=cpu_model(Path("/proc/cpuinfo").read_text()),
        memory_gib=round(pages / 2**30, 1),
        kernel=platform.release(),
        load_average=os.getloadavg(),
        revision=_git(checkout, "rev-parse", "HEAD") or "unknown",
        changed=bool(_git(checkout, "status", "--porcelain")),
    )


def cpu_model(cpuinfo: str) -> str:
    """The first model name in the text of /proc/cpuinfo, or the machine's architecture."""
    for line in cpuinfo.splitlines():
        name, _, value = line.partition(":")
        if name.strip() == "model name":
            return value.strip()
    return platform.machine()


def _git(checkout: Path, *words: str) -> str:
    try:
        done = subprocess.run(
            ["git", "-C", str(checkout), *words], capture_output=True, text=True, check=False
        )
    except FileNotFoundError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
