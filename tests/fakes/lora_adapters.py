"""LoRA adapters for penstock-mini that a test makes: of right shapes, with random weights."""

from __future__ import annotations

import array
import json
import random
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from penstock.replica.adapters.content import content_digest

_LAYERS = 4
_WIDTH = 192
MODULES = ("q_proj", "v_proj")


def random_adapter(
    directory: Path,
    seed: int,
    *,
    rank: int = 8,
    width: int = _WIDTH,
    modules: Sequence[str] = MODULES,
    **fields: Any,
) -> str:
    """Writes an adapter whose weights follow from `seed`; `fields` go into its config. Returns its
    digest."""
    directory.mkdir(parents=True, exist_ok=True)
    config = {"peft_type": "LORA", "r": rank, "lora_alpha": 2 * rank, "target_modules": [*modules]}
    (directory / "adapter_config.json").write_text(json.dumps(config | fields))
    shapes: dict[str, tuple[int, int]] = {}
    for layer in range(_LAYERS):
        for module in modules:
            path = f"base_model.model.model.layers.{layer}.self_attn.{module}"
            shapes[f"{path}.lora_A.weight"] = (rank, width)
            shapes[f"{path}.lora_B.weight"] = (width, rank)
    _write(directory / "adapter_model.safetensors", shapes, random.Random(seed))
    return content_digest(directory)


def _write(path: Path, shapes: dict[str, tuple[int, int]], chance: random.Random) -> None:
    header: dict[str, Any] = {}
    data = bytearray()
    for name, (rows, columns) in shapes.items():
        weights = array.array("f", (chance.gauss(0, 0.2) for _ in range(rows * columns)))
        begin = len(data)
        data += weights.tobytes()
        header[name] = {
            "dtype": "F32",
            "shape": [rows, columns],
            "data_offsets": [begin, len(data)],
        }
    head = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(head)) + head + data)


__all__ = ["MODULES", "random_adapter"]
