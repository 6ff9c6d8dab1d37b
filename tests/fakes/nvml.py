"""An NVML with two accelerators, built for the machine that the tests run on."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path


def nvml_in(folder: Path) -> Path:
    """The library that a driver would ship, in this folder."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    assert compiler, "building Penstock needs a C compiler, and so does this test"
    built = folder / "libnvidia-ml.so.1"
    source = Path(__file__).parent / "nvml.c"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", built, source], check=True)
    return built
