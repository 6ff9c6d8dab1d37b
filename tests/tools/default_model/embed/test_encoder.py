"""The same seed makes the same penstock-embed: shown with a few steps of the real training."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

import torch

from tools.default_model.embed.encoder import make_encoder


@pytest.fixture(autouse=True)
def _torch_as_before() -> Iterator[None]:
    threads = torch.get_num_threads()
    yield
    torch.set_num_threads(threads)
    torch.use_deterministic_algorithms(False)


def _made(out: Path, seed: int) -> dict[str, bytes]:
    make_encoder(out, seed, 2, 1e-3, lambda _line: None)
    return {str(p.relative_to(out)): p.read_bytes() for p in out.rglob("*") if p.is_file()}


@pytest.mark.long
def test_the_same_seed_makes_the_same_files_and_another_seed_others(tmp_path: Path) -> None:
    first, second = _made(tmp_path / "a", 7), _made(tmp_path / "b", 7)
    other = _made(tmp_path / "c", 8)
    assert first == second
    assert first["model.safetensors"] != other["model.safetensors"]
