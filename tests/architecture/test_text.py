"""The project's text speaks of the project alone, and names no machine that it was made on."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
REGISTRY = re.compile(
    r"(extra-)?index-url\s*=|\b(files|pypi|registry|download)\.(python|pythonhosted|npmjs|pytorch)\."
    r"|\bpypi\.org\b|\bpythonhosted\.org\b"
)
# Homes and mounts of somebody's machine; what any Linux has (/usr, /etc, /var, /tmp) is none.
MACHINE = re.compile(r"(?<![\w.*])/(work|root|home/\w+|opt/\w+|mnt/\w+|Users/\w+)/[\w.]")
# Where such a path or host is what the text is about.
EXCUSED = {"tests/architecture/test_text.py": "the patterns themselves"}


def texts() -> dict[str, str]:
    """Every text of the repository, new ones included, by its path."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    data = {name: (ROOT / name) for name in listed.split("\0") if name}
    return {
        name: path.read_text(errors="replace")
        for name, path in data.items()
        if path.is_file() and b"\0" not in path.read_bytes()[:8192]
    }


@pytest.mark.parametrize("pattern", [MACHINE, REGISTRY], ids=["machine", "registry"])
def test_no_text_names_a_machines_folders_or_a_registrys_host(pattern: re.Pattern[str]) -> None:
    found = {
        name: match.group()
        for name, text in texts().items()
        if name not in EXCUSED and (match := pattern.search(text))
    }
    assert not found


def test_no_text_names_this_checkouts_folder() -> None:
    here = f"{ROOT}/"
    assert not [name for name, text in texts().items() if here in text]


def test_no_excuse_outlives_its_reason() -> None:
    known = texts()
    assert all(MACHINE.search(known[name]) or REGISTRY.search(known[name]) for name in EXCUSED)


@pytest.mark.parametrize("text", ["see /work/project/a.py", "'/root/.cache'", "/home/me/model"])
def test_a_machines_folder_is_found(text: str) -> None:
    assert MACHINE.search(text)


@pytest.mark.parametrize("text", ["network/root/x", "https://host.example/home/me/x", "/usr/lib/x"])
def test_a_path_of_any_machine_is_none(text: str) -> None:
    assert not MACHINE.search(text)


@pytest.mark.parametrize("text", ["https://pypi.org/simple", "files.pythonhosted.org/a.whl"])
def test_a_registrys_host_is_found(text: str) -> None:
    assert REGISTRY.search(text)
