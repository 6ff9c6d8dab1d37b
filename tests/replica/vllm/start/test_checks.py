"""What is said of a model before vLLM sees it."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from penstock.replica.values import CannotLoad
from penstock.replica.vllm.start import checks


@pytest.fixture
def model(tmp_path: Path) -> Path:
    (tmp_path / "config.json").write_text(
        json.dumps({"architectures": ["LlamaForCausalLM"], "max_position_embeddings": 4096})
    )
    (tmp_path / "model.safetensors").write_bytes(b"x" * 1000)
    (tmp_path / "tokenizer.json").write_text("{}")
    return tmp_path


def test_a_whole_model_is_found(model: Path) -> None:
    place = checks.find_model(str(model))
    assert place.argument == str(model)
    assert checks.longest_context(place) == 4096


@pytest.mark.parametrize(("name", "writes"), [("penstock-mini", True), ("penstock-embed", False)])
def test_a_models_config_says_whether_it_writes_text(name: str, writes: bool) -> None:
    assert checks.writes_text(checks.find_model(name)) is writes


def test_a_name_that_is_no_directory_is_left_to_the_hub() -> None:
    place = checks.find_model("someone/some-model")
    assert (place.directory, place.argument) == (None, "someone/some-model")


@pytest.mark.parametrize("name", ["/no/such/place", "./nothing", "a b c"])
def test_a_path_that_is_not_there_is_named(name: str) -> None:
    with pytest.raises(CannotLoad, match="there is no directory"):
        checks.find_model(name)


@pytest.mark.parametrize(
    ("file", "text", "words"),
    [
        ("config.json", None, "holds no config.json"),
        ("config.json", "{", "cannot be read"),
        ("config.json", "{}", "names no architectures"),
        ("model.safetensors", None, "holds no weights"),
        ("tokenizer.json", None, "holds no tokenizer"),
    ],
)
def test_a_model_that_lacks_a_part_is_refused(
    model: Path, file: str, text: str | None, words: str
) -> None:
    (model / file).unlink()
    if text is not None:
        (model / file).write_text(text)
    with pytest.raises(CannotLoad, match=words) as caught:
        checks.find_model(str(model))
    assert str(model) in str(caught.value)


@pytest.mark.parametrize("kind", ["endless", "waiting", "deep", "large"])
def test_a_config_that_could_not_be_read_to_its_end_is_refused(model: Path, kind: str) -> None:
    config = model / "config.json"
    config.unlink()
    if kind == "endless":
        config.symlink_to("/dev/zero")
    elif kind == "waiting":
        os.mkfifo(config)
    elif kind == "deep":
        config.write_text("[" * 100_000)
    else:
        config.touch()
        os.truncate(config, 1 << 30)
    with pytest.raises(CannotLoad, match=r"config.json cannot be read: \w"):
        checks.find_model(str(model))


def test_a_cuda_build_without_a_gpu_is_told_in_words_that_help() -> None:
    checks.check_device(found=True)
    with pytest.raises(CannotLoad, match=r"finds no GPU.*nvidia-smi.*PENSTOCK_VLLM_BUILD=cpu"):
        checks.check_device(found=False)


def test_free_memory_respects_the_containers_limit_and_its_page_cache(tmp_path: Path) -> None:
    (tmp_path / "memory.max").write_text("1000000\n")
    (tmp_path / "memory.current").write_text("400000\n")
    assert checks.free_memory(tmp_path) == 600000
    (tmp_path / "memory.stat").write_text("anon 300000\nfile 100000\nkernel 0\n")
    assert checks.free_memory(tmp_path) == 700000
    (tmp_path / "memory.max").write_text("max\n")
    assert checks.free_memory(tmp_path) > 700000


def test_free_memory_is_not_known_where_nobody_tells_it(tmp_path: Path) -> None:
    assert checks.free_memory(tmp_path, tmp_path / "meminfo") == -1


def test_a_small_model_gets_one_thread_and_a_large_one_all(model: Path) -> None:
    assert checks.fitting_threads(checks.find_model(str(model))) == 1
    with (model / "model.safetensors").open("wb") as file:
        file.truncate(1 << 30)
    assert checks.fitting_threads(checks.find_model(str(model))) == 0


def test_a_hub_id_that_cannot_be_had_tells_of_the_other_way(model: Path) -> None:
    said = checks.find_model("someone/some-model").failure("the hub is away.")
    assert "the hub is away. To serve a model from disk, give its directory's path" in said
    assert checks.find_model(str(model)).failure("broken") == f"model {model}: broken"


def test_a_vllm_that_was_not_tested_is_refused_with_both_versions_and_a_way_out() -> None:
    checks.check_version("0.32.4", untested=False)
    with pytest.raises(CannotLoad, match=r"vLLM 0\.33\.0 .* with 0\.32\.x .*untested_vllm=true"):
        checks.check_version("0.33.0", untested=False)
    checks.check_version("0.33.0", untested=True)
