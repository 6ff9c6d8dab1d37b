"""What is said of an adapter before vLLM sees it."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import pytest

from penstock.adapters.fitness import FamilyLimits
from penstock.replica.adapters.values import Prepared
from penstock.replica.default_model import WEIGHTS, shipped
from penstock.replica.values import AdapterSource, CannotLoad
from penstock.replica.vllm.lora.adapter_files import look_at, shapes_of
from penstock.replica.vllm.start.checks import ModelPlace
from tests.fakes.lora_adapters import random_adapter

_MINI = ModelPlace("mini", WEIGHTS / "model")


def _look(directory: Path, digest: str = "", rank: int = 16) -> Prepared:
    limits = FamilyLimits(max_rank=rank, shapes=shapes_of(_MINI))
    return look_at(AdapterSource("a@1", str(directory), digest), directory, limits)


def _model(directory: Path, tensors: dict[str, Any]) -> ModelPlace:
    """A model whose weights hold nothing."""
    about = {
        name: {"shape": [0, 0], "data_offsets": [0, 0]} | tensor for name, tensor in tensors.items()
    }
    header = json.dumps(about).encode()
    (directory / "model.safetensors").write_bytes(struct.pack("<Q", len(header)) + header)
    return ModelPlace("m", directory)


def test_a_whole_adapter_is_found_with_its_digest_and_rank(tmp_path: Path) -> None:
    digest = random_adapter(tmp_path, 1)
    found = _look(tmp_path, digest)
    assert (found.directory, found.rank, found.adapter.digest) == (tmp_path, 8, digest)


@pytest.mark.parametrize("name", ["penstock-mini/pirate", "penstock-mini/json"])
def test_the_shipped_adapters_are_whole(name: str) -> None:
    directory = shipped(name)
    assert directory is not None
    assert _look(directory).rank == 8


def test_other_bytes_than_were_told_are_refused(tmp_path: Path) -> None:
    digest = random_adapter(tmp_path, 1)
    with pytest.raises(CannotLoad, match=f"have sha256 {digest}, they are to be {'0' * 64}"):
        _look(tmp_path, "0" * 64)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"peft_type": "IA3"}, "only LORA"),
        ({"r": 0}, "a rank is a number"),
        ({"r": 4}, "has rank 8, its config says 4"),
        ({"rank_pattern": {"q_proj": 4}}, "q_proj has rank 8, its config says 4"),
        ({"target_modules": []}, "target_modules"),
        ({"modules_to_save": ["lm_head"]}, "modules_to_save"),
    ],
)
def test_an_adapter_that_vllm_would_choke_on_is_refused(
    tmp_path: Path, change: dict[str, Any], words: str
) -> None:
    random_adapter(tmp_path, 1, **change)
    with pytest.raises(CannotLoad, match=words) as caught:
        _look(tmp_path)
    assert str(caught.value).startswith("adapter a@1: ")


def test_an_adapter_of_a_model_of_another_width_is_refused(tmp_path: Path) -> None:
    random_adapter(tmp_path, 1, width=96)
    with pytest.raises(CannotLoad, match="is 96 to 96 wide in it, 192 to 192 in its base"):
        _look(tmp_path)


def test_a_module_that_the_model_lacks_is_refused(tmp_path: Path) -> None:
    random_adapter(tmp_path, 1, modules=("x_proj",))
    with pytest.raises(CannotLoad, match="x_proj, which its base model does not have"):
        _look(tmp_path)


def test_a_rank_that_the_engine_has_no_room_for_is_refused(tmp_path: Path) -> None:
    random_adapter(tmp_path, 1, rank=32)
    with pytest.raises(CannotLoad, match="its rank is 32"):
        _look(tmp_path)


def test_weights_that_are_cut_off_are_refused(tmp_path: Path) -> None:
    random_adapter(tmp_path, 1)
    path = tmp_path / "adapter_model.safetensors"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(CannotLoad, match="it is cut off or padded"):
        _look(tmp_path)


def test_an_adapter_without_weights_or_directory_is_refused(tmp_path: Path) -> None:
    random_adapter(tmp_path, 1)
    (tmp_path / "adapter_model.safetensors").unlink()
    with pytest.raises(CannotLoad, match=r"holds no adapter_model\.safetensors"):
        _look(tmp_path)
    with pytest.raises(CannotLoad, match="there is no directory"):
        _look(tmp_path / "gone")


def test_shapes_are_told_by_path_and_those_of_tied_embeddings_twice() -> None:
    shapes = shapes_of(_MINI)
    assert shapes["model.layers.0.mlp.down_proj"] == (576, 192)
    assert shapes["lm_head"] == shapes["model.embed_tokens"] == (192, 1538)


@pytest.mark.parametrize(
    "tensors",
    [
        {"model.layers.0.q_proj.weight": {"dtype": "U8"}},
        {"transformer.h.0.attn.c_attn.weight": {"dtype": "F32"}},
    ],
)
def test_shapes_of_packed_or_otherwise_named_weights_are_not_guessed(
    tmp_path: Path, tensors: dict[str, Any]
) -> None:
    assert shapes_of(_model(tmp_path, tensors)) == {}


def test_a_model_of_the_hub_has_no_shapes_to_look_at() -> None:
    assert shapes_of(ModelPlace("someone/model", None)) == {}
