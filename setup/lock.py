"""Writes the locks anew from pyproject.toml: `.venv/bin/python setup/lock.py`.

One resolution of everything is made first; each lock is a part of it, so that any of them can be
installed beside another. The CUDA build has a resolution of its own, from the default index alone,
so that it names ordinary torch.
"""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

from python_env import LOCKS, ROOT, VENV, pip_sources

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


def compile_lock(out: Path, *options: str, everywhere: bool = True) -> None:
    """Resolves pyproject.toml with the given extras, groups and constraints into `out`."""
    sources = pip_sources() if everywhere else []
    subprocess.run(
        [
            str(VENV / "bin" / "uv"),
            "pip",
            "compile",
            *COMMON,
            *sources,
            "pyproject.toml",
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
    compile_lock(
        LOCKS / "cuda.txt",
        "--extra",
        "cuda",
        "--group",
        "build",
        "-c",
        str(LOCKS / "core.txt"),
        everywhere=False,
    )


if __name__ == "__main__":
    main()
