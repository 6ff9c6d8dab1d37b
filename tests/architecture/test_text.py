"""The project's text speaks of the project alone, and carries nothing of the machine it is on."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SUFFIXES = {".py", ".cc", ".h", ".proto", ".md", ".toml", ".txt", ".cmake", ".json", ""}
REGISTRY = re.compile(r"(extra-)?index-url\s*=|https?://(files|pypi|registry)\.[a-z.]+")


def texts() -> list[Path]:
    """Every text file of the repository."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split("\n")
    files = [ROOT / name for name in listed if name]
    return [p for p in files if p.is_file() and p.suffix in SUFFIXES and p.stat().st_size < 500_000]


def test_no_file_names_a_folder_of_this_machine() -> None:
    here = str(ROOT) + "/"
    assert not [str(p) for p in texts() if here in p.read_text(errors="replace")]


def test_no_file_names_the_host_of_a_package_registry() -> None:
    mine = Path(__file__)
    wrong = [p for p in texts() if p != mine and REGISTRY.search(p.read_text(errors="replace"))]
    assert not wrong
