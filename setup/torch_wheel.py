"""Which torch the CPU build gets: the +cpu wheel where an index offers it, else the ordinary one.

The ordinary wheel is of the same version and works too, but brings CUDA's libraries along.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

import installer
import locked
from console import SetupError, say
from places import LOCKS

CHOICE = "PENSTOCK_TORCH"  # "ordinary": without asking for the other
TRIES = 3  # each of them several tries of uv's own
ORDINARY = "torch-ordinary"
ORDINARY_SIZE = "about 3 GB of CUDA libraries that this machine makes no use of"


def locks(logs: Path) -> list[Path]:
    """The locks that make vLLM's CPU build on this machine. Raises `SetupError`."""
    whole = LOCKS / "cpu.txt"
    if not wants_ordinary(os.environ):
        if offered(pin()):
            return [whole]
        say(
            f"no index that pip knows has {pin()} for this Python: taking the ordinary wheel, with "
            f"{ORDINARY_SIZE} (an index of +cpu wheels in {installer.EXTRA_INDEX} spares them)"
        )
    rest = logs / "cpu-without-torch.txt"
    rest.parent.mkdir(parents=True, exist_ok=True)
    rest.write_text(locked.without(whole.read_text(), {"torch", "triton"}))
    return [rest, LOCKS / f"{ORDINARY}.txt"]


def wants_ordinary(environ: Mapping[str, str]) -> bool:
    """Whether `CHOICE` asks for the ordinary wheel. Raises `SetupError` where it asks for else."""
    chosen = environ.get(CHOICE, "")
    if chosen not in ("", "ordinary"):
        raise SetupError(f"{CHOICE}={chosen}: say ordinary, or leave it out")
    return chosen == "ordinary"


def pin() -> str:
    """The torch that the CPU lock names, as a requirement."""
    entries = locked.parse((LOCKS / "cpu.txt").read_text())
    found = next((e.version for e in entries if e.name == "torch" and "+cpu" in e.version), None)
    assert found is not None, "setup/locks/cpu.txt names no torch==X+cpu"
    return found


def offered(requirement: str) -> bool:
    """Whether an index or link folder has it for this Python.

    Raises `SetupError` when they cannot be asked: silence is no "no", and the ordinary wheel is too
    big to be taken by mistake.
    """
    ask = [*installer.uv("install"), "--dry-run", "--no-deps", "--reinstall", requirement]
    for _ in range(TRIES):
        asked = subprocess.run(
            ask, capture_output=True, text=True, check=False, env=installer.environment()
        )
        if asked.returncode == 0:
            return True
        if "No solution found" in asked.stderr:
            return False
    raise SetupError(
        f"could not ask the package indexes for {requirement}:\n"
        + "".join(f"    {line}\n" for line in asked.stderr.splitlines()[-8:])
        + "  Is the network there? Run this again when it is;\n"
        + f"  {CHOICE}=ordinary takes the ordinary wheel without asking, with {ORDINARY_SIZE}."
    )
