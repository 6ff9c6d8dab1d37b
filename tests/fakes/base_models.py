"""Base models as their weights' headers tell them: shapes, and nothing in them."""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Mapping
from pathlib import Path

LAYERS = 4


def base_model(directory: Path, width: int = 64, *, files: int = 1, missing: int = 0) -> Path:
    """Writes a model whose layers have q_proj and v_proj of this width, in so many files less those
    that are missing. Returns the directory."""
    directory.mkdir(parents=True, exist_ok=True)
    shapes = {"model.embed_tokens.weight": (100, width)}
    for layer in range(LAYERS):
        for module in ("q_proj", "v_proj"):
            shapes[f"model.layers.{layer}.self_attn.{module}.weight"] = (width, width)
    names = list(shapes)
    for n in range(files - missing):
        part = {name: shapes[name] for name in names[n::files]}
        split = f"model-{n + 1:05}-of-{files:05}.safetensors"
        write_weights(directory / (split if files > 1 else "model.safetensors"), part)
    return directory


def write_weights(path: Path, shapes: Mapping[str, tuple[int, ...]], dtype: str = "BF16") -> None:
    """A safetensors file of tensors of two bytes a number, all zero."""
    about, end = {}, 0
    for name, shape in shapes.items():
        begin, end = end, end + 2 * math.prod(shape)
        about[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [begin, end]}
    header = json.dumps(about).encode()
    with path.open("wb") as file:
        file.write(struct.pack("<Q", len(header)) + header)
        file.truncate(8 + len(header) + end)


__all__ = ["LAYERS", "base_model", "write_weights"]
