"""Makes .venv and installs exactly the locked packages into it, with uv.

uv does not read pip's configuration, so its indexes and link folders are passed on: whoever can
install with pip can install with this.
"""

from __future__ import annotations

import ast
import hashlib
import os
import re
import shutil
import subprocess
import sys
import venv
from collections.abc import Collection
from pathlib import Path

import vllm_build
from console import run_step, say

ROOT = Path(__file__).resolve().parent.parent
LOCKS = ROOT / "setup" / "locks"
VENV = ROOT / ".venv"
OLD_VENV = ROOT / ".venv.old"
PYTHON = VENV / "bin" / "python"
EXTRA_INDEX = "PENSTOCK_EXTRA_INDEX"  # one more index, such as PyTorch's own CPU wheels


def installed_build() -> str | None:
    """The vLLM build that .venv holds, whole or begun."""
    return next((name for name in vllm_build.BUILDS if stamp_path(name).exists()), None)


def clear_of_other_build(locks: Collection[str]) -> None:
    """Puts .venv away if it holds another vLLM build than the wanted one.

    Both builds are a package `vllm`: one installed over the other is neither.
    """
    held = installed_build()
    if held is None or held in locks or not set(locks) & set(vllm_build.BUILDS):
        return
    say(f".venv holds vLLM's {held} build: making it anew")
    # Under its new name first: interrupted, it leaves no half of it behind as .venv.
    shutil.rmtree(OLD_VENV, ignore_errors=True)
    VENV.rename(OLD_VENV)
    shutil.rmtree(OLD_VENV, ignore_errors=True)


def ensure(locks: tuple[str, ...], logs: Path) -> None:
    """Brings .venv to the named locks; does nothing when it is there already."""
    clear_of_other_build(locks)
    if not PYTHON.exists():
        say(f"making {VENV.relative_to(ROOT)} with Python {sys.version.split()[0]}")
        venv.create(VENV, with_pip=True, clear=True)
    wanted = [name for name in locks if stamp(name).read_text() != digest(name)]
    if not wanted:
        return
    run_step(
        "getting the installer (uv)",
        [str(PYTHON), "-m", "pip", "install", "-q", "-r", str(LOCKS / "uv.txt")],
        logs / "uv.log",
        hint="Does `pip install uv` work?",
    )
    for name in wanted:
        install(name, logs)
        stamp(name).write_text(digest(name))


def install(name: str, logs: Path) -> None:
    """Installs one lock as it stands, without resolving anything."""
    files = [LOCKS / f"{name}.txt"]
    if name == "cpu" and not can_have(torch_pin()):
        say("torch's +cpu wheel is not to be had: taking the ordinary wheel, with its libraries")
        text = re.sub(r"^(torch|triton)==.*$", "", files[0].read_text(), flags=re.MULTILINE)
        files = [logs / "cpu-without-torch.txt", LOCKS / "torch-ordinary.txt"]
        files[0].write_text(text)
    sizes = {"cpu": " (vLLM and torch: 3 to 6 GB)", "cuda": " (vLLM and CUDA: about 10 GB)"}
    run_step(
        f"installing the {name} packages{sizes.get(name, '')}",
        [*uv("install"), "--no-deps", *(arg for path in files for arg in ("-r", str(path)))],
        logs / f"packages-{name}.log",
        hint="Is the network there, and about 8 GB of disk free?",
    )


def torch_pin() -> str:
    """The torch that the CPU lock names, as a requirement."""
    pin = re.search(r"^torch==[\d.]+\+cpu", (LOCKS / "cpu.txt").read_text(), re.MULTILINE)
    assert pin is not None, "setup/locks/cpu.txt names no torch==X+cpu"
    return pin.group()


def can_have(requirement: str) -> bool:
    """Whether an index or link folder offers it."""
    dry = [*uv("install"), "--dry-run", "--no-deps", "--reinstall", requirement]
    return subprocess.run(dry, capture_output=True, check=False).returncode == 0


def uv(verb: str) -> list[str]:
    """The start of a uv pip command line that sees what pip sees."""
    return [
        str(VENV / "bin" / "uv"),
        "pip",
        verb,
        "--python",
        str(PYTHON),
        "--index-strategy",
        "unsafe-best-match",
        *pip_sources(),
    ]


def pip_sources() -> list[str]:
    """pip's configured indexes and link folders as uv's options, and `EXTRA_INDEX`."""
    listed = subprocess.run(
        [str(PYTHON), "-m", "pip", "config", "list"], capture_output=True, text=True, check=False
    ).stdout
    options: list[str] = []
    names = {
        "index-url": "--default-index",
        "extra-index-url": "--index",
        "find-links": "--find-links",
    }
    for line in dict.fromkeys(listed.splitlines()):
        key, _, value = line.partition("=")
        option = names.get(key.rpartition(".")[2])
        for item in str(ast.literal_eval(value)).split() if option else ():
            options += [str(option), item]
    if extra := os.environ.get(EXTRA_INDEX):
        options += ["--index", extra]
    return options


def digest(name: str) -> str:
    """What an installed lock is known by: its text and the kind of Python that it is for."""
    text = (LOCKS / f"{name}.txt").read_bytes() + str(sys.implementation.cache_tag).encode()
    return hashlib.sha256(text).hexdigest()


def stamp(name: str) -> Path:
    """The file in .venv that says which lock is installed; made empty when it is not there."""
    path = stamp_path(name)
    path.touch()
    return path


def stamp_path(name: str) -> Path:
    """Where that file is, or would be."""
    return VENV / f"penstock-{name}.stamp"
