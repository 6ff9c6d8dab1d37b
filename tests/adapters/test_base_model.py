"""What modules a base model has is told from the headers of its weights, or not at all."""

from __future__ import annotations

import pytest

from penstock.adapters.base_model import module_shapes, weights_among
from penstock.adapters.safetensors import Tensor

Q = "model.layers.0.self_attn.q_proj"


def tensor(name: str, *shape: int, dtype: str = "BF16") -> Tensor:
    return Tensor(name, dtype, shape, 0, 0)


def test_modules_are_told_by_path_with_inputs_and_outputs() -> None:
    norm = tensor("model.layers.0.input_layernorm.weight", 8)
    bias = tensor(f"{Q}.bias", 16)
    assert module_shapes([tensor(f"{Q}.weight", 16, 8), norm, bias]) == {Q: (8, 16)}


def test_a_head_that_shares_its_tensor_with_the_embedding_is_a_module_too() -> None:
    shared = [tensor(f"{Q}.weight", 8, 8), tensor("model.embed_tokens.weight", 100, 8)]
    assert module_shapes(shared)["lm_head"] == (8, 100)
    of_its_own = tensor("lm_head.weight", 120, 8)
    assert module_shapes([*shared, of_its_own])["lm_head"] == (8, 120)


@pytest.mark.parametrize(
    "other",
    [
        tensor("model.layers.1.self_attn.q_proj.qweight", 1, 8, dtype="I32"),
        tensor("model.layers.1.self_attn.q_proj.weight", 4, 8, dtype="U8"),
    ],
)
def test_where_some_weights_are_packed_nothing_is_said(other: Tensor) -> None:
    assert module_shapes([tensor(f"{Q}.weight", 8, 8), other]) == {}


def test_paths_that_adapters_name_otherwise_say_nothing() -> None:
    assert module_shapes([tensor("transformer.h.0.attn.c_attn.weight", 8, 24)]) == {}


@pytest.mark.parametrize(
    ("names", "weights"),
    [
        (["config.json", "model.safetensors"], ("model.safetensors",)),
        (["b.safetensors", "a.safetensors"], ("a.safetensors", "b.safetensors")),
        (
            ["model-00002-of-00002.safetensors", "model-00001-of-00002.safetensors"],
            ("model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"),
        ),
        (["model-00001-of-00002.safetensors"], ()),
        (["consolidated.safetensors", "model-00002-of-00003.safetensors"], ()),
        (["pytorch_model.bin"], ()),
    ],
)
def test_weights_are_the_files_of_a_model_that_is_all_there(
    names: list[str], weights: tuple[str, ...]
) -> None:
    assert weights_among(names) == weights
