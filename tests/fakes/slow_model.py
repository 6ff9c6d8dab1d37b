"""penstock-mini with layers that compute much and add nothing: the same answers, later."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Final

import torch
from safetensors.torch import load_file, save_file

from penstock.replica.default_model import shipped

_WEIGHTS: Final = "model.safetensors"
_LAYER: Final = re.compile(r"^model\.layers\.(\d+)\.(.*)$")
_OUT: Final = ("self_attn.o_proj.weight", "mlp.down_proj.weight")
"""What a layer adds to the text so far goes through one of these."""


def slow_model(directory: Path, idle_layers: int) -> Path:
    """Writes the model with so many layers more. Returns the directory."""
    source = shipped("penstock-mini")
    assert source is not None
    shutil.copytree(source, directory)
    config = json.loads((source / "config.json").read_text())
    layers = config["num_hidden_layers"]
    tensors = load_file(source / _WEIGHTS)
    for name, weight in list(tensors.items()):
        found = _LAYER.match(name)
        if found and found[1] == str(layers - 1):
            idle = torch.zeros_like(weight) if found[2] in _OUT else weight
            for number in range(layers, layers + idle_layers):
                tensors[f"model.layers.{number}.{found[2]}"] = idle.clone()
    save_file(tensors, directory / _WEIGHTS, metadata={"format": "pt"})
    longer = {**config, "num_hidden_layers": layers + idle_layers}
    (directory / "config.json").write_text(json.dumps(longer))
    return directory


__all__ = ["slow_model"]
