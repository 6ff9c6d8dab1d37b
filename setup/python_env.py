"""Makes .venv and installs exactly the locked packages into it.

What has been done is known by stamps in .venv: one for the environment itself, one for each lock.
A stamp is emptied before its work begins and written when it is done, so that what was interrupted
is seen and done again.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import sys
import venv
from collections.abc import Collection, Iterable
from pathlib import Path

import installer
import locked
import torch_wheel
import vllm_build
from console import run_step, say
from places import LOCKS, PYTHON, ROOT, VENV

OLD_VENV = ROOT / ".venv.old"
MADE = VENV / "penstock-venv.stamp"  # holds the folder that .venv was made for
SIZES = {"cpu": " (vLLM and torch: 3 to 6 GB)", "cuda": " (vLLM and CUDA: about 10 GB)"}


def ensure(locks: tuple[str, ...], logs: Path) -> None:
    """Brings .venv to the named locks; does nothing when it is there already."""
    clear_of_other_build(locks)
    ensure_venv()
    wanted = [name for name in locks if read(stamp(name)) != digest(name)]
    if not wanted:
        return
    installer.get(logs)
    for name in wanted:
        install(name, logs)


def installed_build() -> str | None:
    """The vLLM build that .venv holds, whole or begun."""
    return next((name for name in vllm_build.BUILDS if stamp(name).exists()), None)


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


def ensure_venv() -> None:
    """Makes .venv, unless a whole one is there; one that was copied or moved is put right."""
    made_for = read(MADE) or unmarked_venv_folder()
    if not PYTHON.exists() or not made_for:
        if VENV.exists():
            say(f"{VENV.name} is not whole: making it anew")
        say(f"making {VENV.name} with Python {sys.version.split()[0]}")
        MADE.unlink(missing_ok=True)
        venv.create(VENV, with_pip=True, clear=True)
    elif made_for != str(VENV):
        say(f"{VENV.name} was made for {made_for}: turning it to this folder")
        turn(made_for)
    MADE.write_text(str(VENV))


def unmarked_venv_folder() -> str:
    """The folder of a .venv without a stamp of its own: only a whole one has got a lock in it."""
    finished = any(read(path) for path in VENV.glob("penstock-*.stamp"))
    config = read(VENV / "pyvenv.cfg")
    made = re.search(r"^command = .* -m venv (?:--\S+ )*(.+)$", config, re.MULTILINE)
    return made.group(1) if finished and made else ""


def turn(made_for: str) -> None:
    """Makes the programs of a .venv that lay at `made_for` run what lies here.

    They name their interpreter by its path: without this, a copied checkout runs the original.
    """
    for path in [VENV / "pyvenv.cfg", *(VENV / "bin").iterdir()]:
        if path.is_symlink() or not path.is_file():
            continue
        data = path.read_bytes()
        if made_for.encode() in data and b"\0" not in data:
            path.write_bytes(data.replace(made_for.encode(), str(VENV).encode()))


def install(name: str, logs: Path) -> None:
    """Installs one lock as it stands, without resolving anything. Raises `SetupError`."""
    files = torch_wheel.locks(logs) if name == "cpu" else [LOCKS / f"{name}.txt"]
    # Half a package looks whole to an installer: after an interruption, all of them anew.
    again = ["--reinstall"] if stamp(name).exists() and not read(stamp(name)) else []
    stamp(name).write_text("")
    run_step(
        f"installing the {name} packages{SIZES.get(name, '')}",
        [*installer.uv("install"), "--no-deps", "--require-hashes", *again, *requirements(files)],
        logs / f"packages-{name}.log",
        hint="Is the network there, and about 8 GB of disk free?",
        env=installer.environment(),
    )
    stamp(name).write_text(digest(name))


def requirements(files: Iterable[Path]) -> list[str]:
    """The files as options."""
    return [option for path in files for option in ("-r", str(path))]


def digest(name: str) -> str:
    """What an installed lock is known by: its pins and the kind of Python that it is for."""
    text = locked.pins((LOCKS / f"{name}.txt").read_text()) + str(sys.implementation.cache_tag)
    return hashlib.sha256(text.encode()).hexdigest()


def stamp(name: str) -> Path:
    """The file in .venv that says which lock is installed; empty: one that was begun."""
    return VENV / f"penstock-{name}.stamp"


def read(path: Path) -> str:
    """A small file's text; empty if it is not there."""
    return path.read_text() if path.is_file() else ""
