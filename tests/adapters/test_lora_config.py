"""A config is read for what decides about serving, and refused for what no engine here computes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from penstock.adapters.lora_config import BadLoraConfig, LoraConfig
from tests.adapters.examples import config

SHIPPED = Path("replica/penstock/replica/default_model/weights/adapters/pirate")


def test_what_peft_wrote_is_read() -> None:
    read = LoraConfig.parse((SHIPPED / "adapter_config.json").read_bytes())
    assert (read.rank, read.base_model, read.rank_pattern) == (8, "penstock-mini", ())
    assert read.target_modules == (
        "down_proj",
        "gate_proj",
        "k_proj",
        "o_proj",
        "q_proj",
        "up_proj",
        "v_proj",
    )


def test_of_ranks_that_differ_the_largest_counts() -> None:
    read = config(rank_pattern={"up_proj": 16, "q_proj": 4})
    assert (read.rank, read.default_rank) == (16, 8)


def test_the_first_key_that_fits_the_end_of_a_path_decides_its_rank() -> None:
    read = config(rank_pattern={"layers.0.q_proj": 2, "q_proj": 4, r"^up\.q_proj$": 6})
    assert read.rank_of("model.layers.0.q_proj") == 2
    assert read.rank_of("model.layers.1.q_proj") == 4
    assert read.rank_of("model.layers.1.my_q_proj") == 8


def test_a_pattern_of_modules_names_none() -> None:
    assert config(target_modules="all-linear").target_modules == ()


@pytest.mark.parametrize(
    "fields",
    [
        {"peft_type": "IA3"},
        {"r": 0},
        {"r": 513},
        {"r": "8"},
        {"r": True},
        {"r": None},
        {"rank_pattern": {"q_proj": 0}},
        {"rank_pattern": ["q_proj"]},
        {"rank_pattern": {"([a-z_.]|\\w|.)+[0-9]": 8}},
        {"alpha_pattern": {"(": 8}},
        {"alpha_pattern": {".*": 8}},
        {"alpha_pattern": {"q_proj": "8"}},
        {"alpha_pattern": [1]},
        {"lora_alpha": None},
        {"lora_alpha": "16"},
        {"lora_alpha": True},
        {"lora_alpha": 10**400},
        {"arrow_config": {"top_k": 2}},
        {"target_modules": ["\ud800"]},
        {"target_modules": []},
        {"target_modules": None},
        {"target_modules": [1]},
        {"bias": "all"},
        {"use_dora": True},
        {"modules_to_save": ["lm_head"]},
        {"layer_replication": [[0, 4]]},
        {"alora_invocation_tokens": [1]},
        {"init_lora_weights": "pissa"},
    ],
)
def test_what_cannot_be_served_is_refused_with_field_and_value(fields: dict[str, Any]) -> None:
    ((name, value),) = fields.items()
    with pytest.raises(BadLoraConfig) as refused:
        config(**fields)
    assert name in str(refused.value)
    assert repr(value)[:200] in str(refused.value) or isinstance(value, dict)
    str(refused.value).encode()


@pytest.mark.parametrize("beginning", [True, False, "gaussian", "EVA"])
def test_a_beginning_that_leaves_the_base_model_alone_is_taken(beginning: Any) -> None:
    assert config(init_lora_weights=beginning).rank == 8


@pytest.mark.parametrize(
    "text",
    [b"", b"[]", b"null", b"{", b"\xff", b"[" * 100_000, b"\xef\xbb\xbf{}", b'{"lora_alpha": NaN}'],
)
def test_what_is_no_json_object_is_refused(text: bytes) -> None:
    with pytest.raises(BadLoraConfig, match="JSON"):
        LoraConfig.parse(text)
