"""penstock-mini in int8, as vLLM loads it: compressed-tensors, weights rounded channel by channel,
activations as they come."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any, Final

import torch
from safetensors.torch import load_file, save_file

from penstock.replica.default_model import shipped

_WEIGHTS: Final = "model.safetensors"
_MOST: Final = 127
_ROUNDED: Final[dict[str, Any]] = {"num_bits": 8, "type": "int", "symmetric": True}
_CONFIG: Final = {
    "quant_method": "compressed-tensors",
    "format": "int-quantized",
    "quantization_status": "compressed",
    "ignore": ["lm_head"],
    "config_groups": {
        "group_0": {
            "targets": ["Linear"],
            "weights": {**_ROUNDED, "strategy": "channel", "dynamic": False},
            "input_activations": {**_ROUNDED, "strategy": "token", "dynamic": True},
        }
    },
}


def int8_model(directory: Path, *, broken_layer: int | None = None) -> Path:
    """Writes the model. Of a broken layer all scales are twice what they should be. Returns the
    directory."""
    source = shipped("penstock-mini")
    assert source is not None
    shutil.copytree(source, directory)
    tensors: dict[str, torch.Tensor] = {}
    for name, weight in load_file(source / _WEIGHTS).items():
        if not name.endswith("_proj.weight"):
            tensors[name] = weight
            continue
        scale = weight.float().abs().amax(1, keepdim=True) / _MOST
        tensors[name] = (weight.float() / scale).round().to(torch.int8)
        tensors[f"{name}_scale"] = scale * (2 if f".layers.{broken_layer}." in name else 1)
    save_file(tensors, directory / _WEIGHTS, metadata={"format": "pt"})
    config = json.loads((source / "config.json").read_text())
    (directory / "config.json").write_text(json.dumps({**config, "quantization_config": _CONFIG}))
    return directory


__all__ = ["int8_model"]
