"""Engines that cannot start say why, in one line, and leave nothing behind."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import psutil
import pytest

from penstock.replica.default_model import shipped
from penstock.replica.values import CannotLoad
from penstock.replica.vllm.engine import VllmEngine
from penstock.replica.vllm.start.preload import ForkedEngine
from tests.fakes.engine_nursery import NurseryEngine

pytestmark = [
    pytest.mark.vllm,
    pytest.mark.filterwarnings(
        "ignore::DeprecationWarning",
        "ignore::FutureWarning",
        # vLLM drops a half-built engine with its sockets open.
        "ignore::ResourceWarning",
        "ignore::pytest.PytestUnraisableExceptionWarning",
    ),
]


async def _refusal(model: Path, forked: ForkedEngine | None = None, **engine_args: str) -> str:
    before = set(psutil.Process().children(recursive=True))
    engine = VllmEngine(str(model), "m", (), engine_args, forked=forked)
    try:
        with pytest.raises(CannotLoad) as caught:
            await engine.start()
    finally:
        await engine.stop()
    left = set(psutil.Process().children(recursive=True)) - before
    assert [c for c in left if "resource_tracker" not in " ".join(c.cmdline())] == []
    assert forked is None or not forked.process.is_alive()
    said = str(caught.value)
    assert "\n" not in said
    return said


@pytest.fixture
def model(tmp_path: Path) -> Path:
    whole = shipped("penstock-mini")
    assert whole is not None
    return shutil.copytree(whole, tmp_path / "model")


async def test_an_architecture_that_vllm_does_not_know(model: Path) -> None:
    config = json.loads((model / "config.json").read_text())
    config["architectures"] = ["NoSuchForCausalLM"]
    (model / "config.json").write_text(json.dumps(config))
    said = await _refusal(model)
    assert "NoSuchForCausalLM" in said
    assert "not supported" in said


async def test_a_flag_that_vllm_does_not_have(model: Path) -> None:
    assert "--no-such-flag" in await _refusal(model, no_such_flag="1")


async def test_a_value_that_vllm_does_not_take(model: Path) -> None:
    said = await _refusal(model, max_num_seqs="many")
    assert "max-num-seqs" in said
    assert "many" in said


async def test_a_parser_that_vllm_does_not_have_is_an_error_of_the_settings(model: Path) -> None:
    parser = {"enable_auto_tool_choice": "true", "tool_call_parser": "nope"}
    said = await _refusal(model, NurseryEngine(), **parser)
    assert said.startswith("engine settings: ")
    assert "nope" in said


@pytest.mark.long
async def test_weights_that_break_off_are_told_from_the_engines_own_process(model: Path) -> None:
    weights = model / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[: weights.stat().st_size // 2])
    assert "SafetensorError" in await _refusal(model)
