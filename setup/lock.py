"""Writes the locks anew from pyproject.toml: `.venv/bin/python setup/lock.py`.

One resolution of everything is made first; each lock is a part of it, so that any of them can be
installed beside another. What needs ordinary torch (vLLM's CUDA build, and the CPU build where the
+cpu wheel is not to be had) is resolved from the default index alone. Hashes are asked for last: an
index tells those of all files of a version, for every platform; a link folder only those of the
files in it, so what a lock knew already of the same version is kept.
"""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

import installer
import locked
import torch_wheel
from places import LOCKS, ROOT, VENV

COMMON = [
    *("--quiet", "--universal", "--python-version", "3.11"),
    *("--no-header", "--no-annotate", "--no-emit-index-url", "--no-emit-find-links"),
    *("--excludes", str(LOCKS / "excludes.txt")),
    *("--index-strategy", "unsafe-best-match"),
]


def compile_lock(
    out: Path, *options: str, source: str = "pyproject.toml", everywhere: bool = True
) -> None:
    """Resolves `source` with the given extras, groups and constraints into `out`."""
    sources = installer.sources() if everywhere else []
    subprocess.run(
        [
            *(str(VENV / "bin" / "uv"), "pip", "compile", *COMMON, *sources),
            *(source, *options, "-o", str(out)),
        ],
        check=True,
        cwd=ROOT,
        env=installer.environment(),
    )


def main() -> None:
    """Writes every lock."""
    known = {path.name: locked.hashes(path.read_text()) for path in LOCKS.glob("*.txt")}
    with tempfile.TemporaryDirectory() as folder:
        everything = Path(folder, "all.txt")
        compile_lock(everything, "--extra", "cpu", "--group", "build", "--group", "dev")
        within = ("-c", str(everything))
        compile_lock(LOCKS / "core.txt", "--group", "build", *within)
        compile_lock(LOCKS / "cpu.txt", "--extra", "cpu", "--group", "build", *within)
        compile_lock(LOCKS / "dev.txt", "--group", "dev", *within)
        ordinary_torch(Path(folder))
    compile_lock(
        LOCKS / "cuda.txt",
        *("--extra", "cuda", "--group", "build", "-c", str(LOCKS / "core.txt")),
        everywhere=False,
    )
    compile_lock(LOCKS / "clients.txt", source="--group=pyproject.toml:clients")
    for name in ("core", "cpu", "dev", torch_wheel.ORDINARY, "cuda", "clients", "uv"):
        add_hashes(LOCKS / f"{name}.txt", known.get(f"{name}.txt", {}))
    for name in (torch_wheel.ORDINARY, "cuda"):
        pin_ordinary_torch(LOCKS / f"{name}.txt")


def ordinary_torch(folder: Path) -> None:
    """The lock of ordinary torch and the libraries that it loads, beside the CPU packages."""
    wanted, within = folder / "torch.in", folder / "cpu.txt"
    wanted.write_text(torch_wheel.pin().removesuffix("+cpu"))
    within.write_text(locked.without((LOCKS / "cpu.txt").read_text(), {"torch", "triton"}))
    compile_lock(
        LOCKS / f"{torch_wheel.ORDINARY}.txt",
        *("-c", str(within)),
        source=str(wanted),
        everywhere=False,
    )


def add_hashes(lock: Path, known: dict[str, set[str]]) -> None:
    """Writes the hashes of a lock's files into it: what the indexes tell, and what is `known`."""
    text = lock.read_text().replace("===", "==")
    told: dict[str, set[str]] = {}
    # Only torch's +cpu wheel lies elsewhere than in the default index; a folder of wheels that
    # somebody built is no place to learn the others' hashes from.
    for everywhere in (False, True):
        part = [entry for entry in locked.parse(text) if ("+" in entry.version) == everywhere]
        told |= ask_for_hashes(part, everywhere=everywhere) if part else {}
    lock.write_text(locked.with_hashes(text, told, known))


def ask_for_hashes(entries: list[locked.Entry], *, everywhere: bool) -> dict[str, set[str]]:
    """The hashes that the indexes tell of some entries' files."""
    with tempfile.TemporaryDirectory() as folder:
        plain, told = Path(folder, "plain.txt"), Path(folder, "told.txt")
        plain.write_text(locked.pins(locked.render(entries)))
        options = ("--no-deps", "--generate-hashes")
        compile_lock(told, *options, source=str(plain), everywhere=everywhere)
        return locked.hashes(told.read_text())


def pin_ordinary_torch(lock: Path) -> None:
    """Makes torch's pin `===`: `==` takes X+cpu too, and prefers it, where an index offers it."""
    lines = lock.read_text().splitlines(keepends=True)
    lock.write_text(
        "".join(
            line.replace("torch==", "torch===", 1)
            if line.startswith("torch==") and not line.startswith("torch===")
            else line
            for line in lines
        )
    )


if __name__ == "__main__":
    main()
