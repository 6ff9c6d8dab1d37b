"""Looks at an adapter's files before vLLM does.

vLLM meets a bad adapter inside its engine, where some mistakes end it, and others pass: an adapter
made for another model's width answers with noise. Raises `CannotLoad`: what, where, what to do.
"""

from __future__ import annotations

import json
import re
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from penstock.replica.default_model import shipped
from penstock.replica.engine import AdapterSource, CannotLoad
from penstock.replica.vllm.checks import ModelPlace, read_json

# The side of a LoRA pair that touches the model's hidden state, whose width the config tells.
_READS_HIDDEN: Final = re.compile(r"\.(q|k|v|gate|up)_proj\.lora_A\.")
_WRITES_HIDDEN: Final = re.compile(r"\.(o|down)_proj\.lora_B\.")
_LARGEST_HEADER: Final = 100 << 20


@dataclass(frozen=True, slots=True)
class AdapterFacts:
    """An adapter that looks loadable."""

    name: str
    directory: Path
    rank: int


def find_adapter(adapter: AdapterSource, place: ModelPlace) -> AdapterFacts:
    """Finds an adapter for the model at `place` and checks its files."""
    found = _find(adapter)
    if place.directory is not None:
        width = read_json(place.directory / "config.json", place.name).get("hidden_size")
        _check_shapes(found, width if isinstance(width, int) else 0)
    return found


def _find(adapter: AdapterSource) -> AdapterFacts:
    """Checks an adapter's files: that they are there, and what they say of themselves."""
    who = f"adapter {adapter.name}"
    directory = shipped(adapter.source) or Path(adapter.source)
    if not directory.is_absolute():
        raise CannotLoad(f"{who}: {adapter.source} is neither an absolute path nor a shipped name")
    if not directory.is_dir():
        raise CannotLoad(f"{who}: there is no directory {directory}; check the path")
    config = read_json(directory / "adapter_config.json", who)
    _check_adapter_config(who, directory, config)
    if not any((directory / f"adapter_model.{kind}").exists() for kind in ("safetensors", "bin")):
        raise CannotLoad(f"{who}: {directory} holds no adapter_model.safetensors")
    return AdapterFacts(adapter.name, directory.resolve(), config["r"])


def _check_adapter_config(who: str, directory: Path, config: dict[str, Any]) -> None:
    where = directory / "adapter_config.json"
    if config.get("peft_type", "LORA") != "LORA":
        raise CannotLoad(f"{who}: {where} says {config['peft_type']}, only LORA can be served")
    rank = config.get("r")
    if not isinstance(rank, int) or not 1 <= rank <= 512:
        raise CannotLoad(f"{who}: {where} says rank r={rank}, vLLM serves ranks from 1 to 512")
    modules = config.get("target_modules")
    if not modules or not isinstance(modules, list | str):
        raise CannotLoad(f"{who}: {where} names no target_modules")
    if config.get("modules_to_save"):
        raise CannotLoad(f"{who}: {where} has modules_to_save, which vLLM does not serve")


def _check_shapes(adapter: AdapterFacts, width: int) -> None:
    """Whether the weights have the rank that the config says, and the model's width."""
    path = adapter.directory / "adapter_model.safetensors"
    if not path.exists():
        return
    for name, shape in _shapes(adapter, path).items():
        rank = shape[0] if ".lora_A." in name else shape[-1] if ".lora_B." in name else adapter.rank
        if rank > adapter.rank:
            raise CannotLoad(
                f"adapter {adapter.name}: {path} has rank {rank} at {name}, its config says "
                f"{adapter.rank}"
            )
        side = _hidden_side(name, shape)
        if width and side not in (None, width):
            raise CannotLoad(
                f"adapter {adapter.name}: made for a model {side} wide, this one is {width} wide "
                f"({path}, {name}); take the adapter that belongs to this model"
            )


def _hidden_side(name: str, shape: list[int]) -> int | None:
    if _READS_HIDDEN.search(name):
        return shape[-1]
    return shape[0] if _WRITES_HIDDEN.search(name) else None


def _shapes(adapter: AdapterFacts, path: Path) -> dict[str, list[int]]:
    """The shapes of a safetensors file's tensors, from its header."""
    try:
        with path.open("rb") as file:
            (length,) = struct.unpack("<Q", file.read(8))
            header: dict[str, Any] = json.loads(file.read(min(length, _LARGEST_HEADER)))
        tensors = {name: about for name, about in header.items() if name != "__metadata__"}
        return {name: about["shape"] for name, about in tensors.items() if about["shape"]}
    except (OSError, ValueError, KeyError, TypeError, struct.error) as error:
        raise CannotLoad(f"adapter {adapter.name}: {path} cannot be read: {error}") from None


__all__ = ["AdapterFacts", "find_adapter"]
