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
    assert (read.rank, read.base_model, read.ranks_differ) == (8, "penstock-mini", False)
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
    assert (read.rank, read.ranks_differ) == (16, True)


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
    assert repr(value) in str(refused.value) or isinstance(value, dict)


@pytest.mark.parametrize("beginning", [True, False, "gaussian", "EVA"])
def test_a_beginning_that_leaves_the_base_model_alone_is_taken(beginning: Any) -> None:
    assert config(init_lora_weights=beginning).rank == 8


@pytest.mark.parametrize("text", [b"", b"[]", b"null", b"{", b"\xff", b"[" * 100_000])
def test_what_is_no_json_object_is_refused(text: bytes) -> None:
    with pytest.raises(BadLoraConfig, match="JSON"):
        LoraConfig.parse(text)
