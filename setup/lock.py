"""Writes the locks anew from pyproject.toml: `.venv/bin/python setup/lock.py`.

One resolution of everything is made first; each lock is a part of it, so that any of them can be
installed beside another. What needs ordinary torch (vLLM's CUDA build, and the CPU build where the
+cpu wheel is not to be had) is resolved from the default index alone.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from pathlib import Path

from python_env import LOCKS, ROOT, VENV, pip_sources, torch_pin

COMMON = [
    "--quiet",
    "--universal",
    "--python-version",
    "3.11",
    "--no-header",
    "--no-annotate",
    "--no-emit-index-url",
    "--no-emit-find-links",
    "--excludes",
    str(LOCKS / "excludes.txt"),
    "--index-strategy",
    "unsafe-best-match",
]


def compile_lock(
    out: Path, *options: str, source: str = "pyproject.toml", everywhere: bool = True
) -> None:
    """Resolves `source` with the given extras, groups and constraints into `out`."""
    sources = pip_sources() if everywhere else []
    subprocess.run(
        [
            str(VENV / "bin" / "uv"),
            "pip",
            "compile",
            *COMMON,
            *sources,
            source,
            *options,
            "-o",
            str(out),
        ],
        check=True,
        cwd=ROOT,
    )


def main() -> None:
    """Writes every lock."""
    with tempfile.TemporaryDirectory() as folder:
        everything = Path(folder, "all.txt")
        compile_lock(everything, "--extra", "cpu", "--group", "build", "--group", "dev")
        within = ("-c", str(everything))
        compile_lock(LOCKS / "core.txt", "--group", "build", *within)
        compile_lock(LOCKS / "cpu.txt", "--extra", "cpu", "--group", "build", *within)
        compile_lock(LOCKS / "dev.txt", "--group", "dev", *within)
    ordinary_torch()
    cuda = LOCKS / "cuda.txt"
    compile_lock(
        cuda,
        "--extra",
        "cuda",
        "--group",
        "build",
        "-c",
        str(LOCKS / "core.txt"),
        everywhere=False,
    )
    pin_ordinary_torch(cuda)


def ordinary_torch() -> None:
    """The lock of ordinary torch and the libraries that it loads, beside the CPU packages."""
    with tempfile.TemporaryDirectory() as folder:
        wanted, within = Path(folder, "torch.in"), Path(folder, "cpu.txt")
        cpu = re.sub(
            r"^(torch|triton)==.*$", "", (LOCKS / "cpu.txt").read_text(), flags=re.MULTILINE
        )
        pin = torch_pin().removesuffix("+cpu")
        wanted.write_text(pin)
        within.write_text(cpu)
        out = LOCKS / "torch-ordinary.txt"
        compile_lock(out, "-c", str(within), source=str(wanted), everywhere=False)
    pin_ordinary_torch(out)


def pin_ordinary_torch(lock: Path) -> None:
    """Makes torch's pin `===`: `==` takes X+cpu too, and prefers it, where an index offers it."""
    lock.write_text(re.sub(r"^torch==(?!=)", "torch===", lock.read_text(), flags=re.MULTILINE))


if __name__ == "__main__":
    main()
