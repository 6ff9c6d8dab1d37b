"""The weights that come with the repository."""

from __future__ import annotations

import json

import pytest

from penstock.replica.default_model import WEIGHTS, engine_args, shipped
from tools.default_model import record

_TEN_MEGABYTES = 10_000_000
_MINI = ("penstock-mini", "penstock-mini/pirate", "penstock-mini/json")
_SHIPPED = (*_MINI, "penstock-embed")


@pytest.mark.parametrize("name", _SHIPPED)
def test_a_shipped_name_is_a_directory_with_weights(name: str) -> None:
    place = shipped(name)
    assert place is not None
    assert list(place.glob("*.safetensors"))


@pytest.mark.parametrize("name", ["", "penstock", "penstock-mini/", "penstock-mini/../model", "/"])
def test_any_other_name_is_not_shipped(name: str) -> None:
    assert shipped(name) is None


def test_only_the_model_that_talks_brings_settings_for_tools() -> None:
    assert engine_args("penstock-mini")["tool_call_parser"] == "hermes"
    assert engine_args("penstock-embed") == engine_args("someone/some-model") == {}


def test_the_weights_are_under_ten_megabytes() -> None:
    files = [path for path in WEIGHTS.rglob("*") if path.is_file()]
    assert 1_000_000 < sum(path.stat().st_size for path in files) < _TEN_MEGABYTES


def test_what_the_weights_were_made_with_stands_beside_them() -> None:
    made = json.loads((WEIGHTS / record.FILE).read_text())
    model = json.loads((WEIGHTS / "model" / "config.json").read_text())
    adapter = json.loads((WEIGHTS / "adapters" / "json" / "adapter_config.json").read_text())
    assert made["sha256"] == record.digests(WEIGHTS)
    assert set(made["versions"]) == set(record.LIBRARIES)
    assert made["versions"]["transformers"] == model["transformers_version"]
    assert made["versions"]["peft"] == adapter["peft_version"]
    assert made["seed"] == 7


def test_the_files_name_no_place_of_the_machine_that_made_them() -> None:
    for path in WEIGHTS.rglob("*.json"):
        text = path.read_text()
        assert "/tmp/" not in text, path
        assert "/home/" not in text, path
        assert "/work/" not in text, path


def test_the_model_stops_by_its_end_token_and_its_heads_suit_vllm() -> None:
    model = WEIGHTS / "model"
    config = json.loads((model / "config.json").read_text())
    generation = json.loads((model / "generation_config.json").read_text())
    assert config["architectures"] == ["LlamaForCausalLM"]
    assert config["hidden_size"] // config["num_attention_heads"] == 32
    assert config["max_position_embeddings"] == 4096
    assert generation["eos_token_id"] == config["eos_token_id"] == 5


@pytest.mark.parametrize("name", ["pirate", "json"])
def test_an_adapter_is_of_rank_eight_for_penstock_mini(name: str) -> None:
    config = json.loads((WEIGHTS / "adapters" / name / "adapter_config.json").read_text())
    assert config["peft_type"] == "LORA"
    assert config["r"] == 8
    assert config["base_model_name_or_path"] == "penstock-mini"


@pytest.mark.parametrize("name", _SHIPPED)
def test_the_weights_load_as_bf16(name: str) -> None:
    torch = pytest.importorskip("torch")
    safetensors = pytest.importorskip("safetensors.torch")
    place = shipped(name)
    assert place is not None
    for path in place.glob("*.safetensors"):
        tensors = safetensors.load_file(path)
        assert tensors
        assert {tensor.dtype for tensor in tensors.values()} == {torch.bfloat16}
        assert all(bool(tensor.isfinite().all()) for tensor in tensors.values())
