"""What is said of an adapter before vLLM sees it."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import pytest

from penstock.replica.engine import AdapterSource, CannotLoad
from penstock.replica.vllm.adapter_files import AdapterFacts, find_adapter
from penstock.replica.vllm.checks import ModelPlace

_PREFIX = "base_model.model.model.layers.0."


def _write_weights(directory: Path, shapes: dict[str, list[int]]) -> None:
    """A safetensors file whose tensors lie nowhere: only its header is looked at."""
    about = {"dtype": "F32", "data_offsets": [0, 0]}
    tensors = {_PREFIX + name: about | {"shape": shape} for name, shape in shapes.items()}
    header = json.dumps({"__metadata__": {"format": "pt"}} | tensors).encode()
    path = directory / "adapter_model.safetensors"
    path.write_bytes(struct.pack("<Q", len(header)) + header)


@pytest.fixture
def place(tmp_path: Path) -> ModelPlace:
    directory = tmp_path / "model"
    directory.mkdir()
    (directory / "config.json").write_text(json.dumps({"hidden_size": 192}))
    return ModelPlace("mini", directory)


@pytest.fixture
def adapter(tmp_path: Path) -> Path:
    directory = tmp_path / "adapter"
    directory.mkdir()
    config = {"peft_type": "LORA", "r": 8, "target_modules": ["q_proj", "o_proj"]}
    (directory / "adapter_config.json").write_text(json.dumps(config))
    shapes = {
        "self_attn.q_proj.lora_A.weight": [8, 192],
        "self_attn.q_proj.lora_B.weight": [256, 8],
        "self_attn.o_proj.lora_A.weight": [8, 256],
        "self_attn.o_proj.lora_B.weight": [192, 8],
    }
    _write_weights(directory, shapes)
    return directory


def _find(adapter: Path | str, place: ModelPlace) -> AdapterFacts:
    return find_adapter(AdapterSource("a@1", str(adapter)), place)


def test_a_whole_adapter_is_found(adapter: Path, place: ModelPlace) -> None:
    found = _find(adapter, place)
    assert (found.directory, found.rank) == (adapter, 8)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"peft_type": "IA3"}, "only LORA"),
        ({"r": 0}, "rank r=0"),
        ({"r": None}, "rank r=None"),
        ({"r": 4}, "has rank 8 at .* its config says 4"),
        ({"target_modules": []}, "no target_modules"),
        ({"modules_to_save": ["lm_head"]}, "modules_to_save"),
    ],
)
def test_an_adapter_that_vllm_would_choke_on_is_refused(
    adapter: Path, place: ModelPlace, change: dict[str, object], words: str
) -> None:
    path = adapter / "adapter_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(CannotLoad, match=words) as caught:
        _find(adapter, place)
    assert "a@1" in str(caught.value)


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("self_attn.q_proj.lora_A.weight", [8, 96]),
        ("mlp.gate_proj.lora_A.weight", [8, 96]),
        ("mlp.down_proj.lora_B.weight", [96, 8]),
    ],
)
def test_an_adapter_of_a_model_of_another_width_is_refused(
    adapter: Path, place: ModelPlace, name: str, shape: list[int]
) -> None:
    _write_weights(adapter, {name: shape})
    with pytest.raises(CannotLoad, match="made for a model 96 wide, this one is 192 wide"):
        _find(adapter, place)


def test_weights_that_are_cut_off_are_refused(adapter: Path, place: ModelPlace) -> None:
    path = adapter / "adapter_model.safetensors"
    path.write_bytes(path.read_bytes()[:50])
    with pytest.raises(CannotLoad, match="cannot be read"):
        _find(adapter, place)


def test_an_adapter_without_weights_or_directory_is_refused(
    adapter: Path, place: ModelPlace
) -> None:
    (adapter / "adapter_model.safetensors").unlink()
    with pytest.raises(CannotLoad, match=r"holds no adapter_model"):
        _find(adapter, place)
    with pytest.raises(CannotLoad, match="there is no directory"):
        _find("/no/such", place)


def test_an_adapters_source_is_never_looked_up_on_the_hub(place: ModelPlace) -> None:
    with pytest.raises(CannotLoad, match="neither an absolute path nor a shipped name"):
        _find("someone/adapter", place)
