"""Adapters of the tests as files: one that is right, for each source to bring."""

from __future__ import annotations

import json
from pathlib import Path

from penstock.adapters.version import CONFIG_FILE, CONTENT_FILES, WEIGHTS_FILE
from tests.adapters.examples import CONFIG, safetensors

LARGE = 1 << 20
"""More bytes than it has."""


def weights(rank: int = 8, width: int = 16) -> bytes:
    """What PEFT writes for the modules of `CONFIG`, all zero."""
    tensors, at = {}, 0
    for module in CONFIG["target_modules"]:
        for side, shape in (("A", (rank, width)), ("B", (width, rank))):
            size = rank * width * 2
            name = f"base_model.model.layers.0.{module}.lora_{side}.weight"
            tensors[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [at, at + size]}
            at += size
    return safetensors(tensors, bytes(at))


FILES = {CONFIG_FILE: json.dumps(CONFIG).encode(), WEIGHTS_FILE: weights()}


def written(directory: Path) -> Path:
    """The directory, with the adapter in it."""
    directory.mkdir(parents=True, exist_ok=True)
    for name, data in FILES.items():
        (directory / name).write_bytes(data)
    return directory


def is_the_adapter(directory: Path) -> bool:
    """Whether its two files are there, as they were written."""
    return all((directory / name).read_bytes() == FILES[name] for name in CONTENT_FILES)
