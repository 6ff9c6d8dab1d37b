"""The same seed makes the same model: shown with a few steps of the real training."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from random import Random

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

import torch
from transformers import AutoTokenizer

from penstock.replica.default_model import WEIGHTS
from tools.default_model.base_model import make_model, train_on
from tools.default_model.tokens import Encoder
from tools.default_model.training import Course, batches

_FEW = Course(steps=3, rate=1e-3, tokens=512)


@pytest.fixture(autouse=True)
def _torch_as_before() -> Iterator[None]:
    threads = torch.get_num_threads()
    yield
    torch.set_num_threads(threads)
    torch.use_deterministic_algorithms(False)


def _made(out: Path, seed: int) -> dict[str, bytes]:
    make_model(out, seed, _FEW, lambda _what, _line: None)
    return {path.name: path.read_bytes() for path in out.iterdir()}


@pytest.mark.long
def test_the_same_seed_makes_the_same_files_and_another_seed_others(tmp_path: Path) -> None:
    first, second = _made(tmp_path / "a", 7), _made(tmp_path / "b", 7)
    other = _made(tmp_path / "c", 8)
    assert first == second
    assert first["model.safetensors"] != other["model.safetensors"]


@pytest.mark.long
def test_training_lowers_the_loss(tmp_path: Path) -> None:
    lines: list[str] = []
    course = Course(steps=50, rate=3e-3, tokens=512)
    make_model(tmp_path, 7, course, lambda _what, line: lines.append(line))
    losses = [float(line.split("loss ")[1].split()[0]) for line in lines if "loss" in line]
    assert losses[-1] < losses[0]


@pytest.mark.long
def test_training_on_is_repeatable_too(tmp_path: Path) -> None:
    tokenizer = make_model(tmp_path / "a", 7, _FEW, lambda _what, _line: None)
    before = (tmp_path / "a" / "model.safetensors").read_bytes()
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    for name in ("a", "b"):
        train_on(tmp_path / name, tokenizer, 7, _FEW, lambda _what, _line: None)
    first, second = (
        {path.name: path.read_bytes() for path in (tmp_path / name).iterdir()} for name in "ab"
    )
    assert first == second
    assert first["model.safetensors"] != before


@pytest.mark.long
def test_an_adapter_is_repeatable_too(tmp_path: Path) -> None:
    pytest.importorskip("peft", reason="peft is only needed to make the model anew")
    from tools.default_model.lora import make_adapter

    made = []
    tokenizer = make_model(tmp_path / "model", 7, _FEW, lambda _what, _line: None)
    for _ in range(2):
        make_adapter("json", tmp_path, tokenizer, 7, _FEW, lambda _what, _line: None)
        place = tmp_path / "adapters" / "json"
        made.append({path.name: path.read_bytes() for path in place.iterdir()})
    assert set(made[0]) == {"adapter_config.json", "adapter_model.safetensors"}
    assert made[0] == made[1]


def test_batches_keep_to_their_size_and_waste_little() -> None:
    encoder = Encoder(AutoTokenizer.from_pretrained(WEIGHTS / "model"))
    sizes, used = 0, 0
    for batch in islice(batches(Random(1), encoder, 3072), 40):
        padded = len(batch) * max(len(example.ids) for example in batch)
        assert padded <= 3072
        sizes, used = sizes + padded, used + sum(len(example.ids) for example in batch)
    assert used > 0.85 * sizes
