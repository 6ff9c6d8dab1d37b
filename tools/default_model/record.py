"""What weights were made with: versions, seed, steps, and the digests of the files.

The same of all of it makes the same files again, on the same kind of machine.
"""

from __future__ import annotations

import hashlib
import json
import platform
from importlib import metadata
from pathlib import Path
from typing import Final

FILE: Final = "made.json"
ENCODER: Final = ("torch", "transformers", "tokenizers", "safetensors", "numpy")
LIBRARIES: Final = (*ENCODER, "peft")


def write(out: Path, libraries: tuple[str, ...], **numbers: int) -> None:
    """Writes `FILE` beside the weights in `out`; the numbers are seed, steps and their like."""
    made = {
        **numbers,
        "python": platform.python_version(),
        "machine": platform.machine(),
        "versions": {name: metadata.version(name) for name in libraries},
        "sha256": digests(out),
    }
    (out / FILE).write_text(json.dumps(made, indent=2) + "\n")


def digests(out: Path) -> dict[str, str]:
    """The SHA-256 of every file of the weights in `out`, by its path there."""
    return {
        path.relative_to(out).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(out.rglob("*"))
        if path.is_file() and path.name != FILE
    }
