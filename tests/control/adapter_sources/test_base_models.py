"""What the head can tell of a base model: by path, by name, from a hub's cache; else nothing."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from penstock.control.adapter_sources.base_models import MachineModels
from penstock.control.adapter_sources.directories import shipped_models
from penstock.replica.default_model import shipped
from tests.fakes.base_models import base_model, write_weights

Q = "model.layers.3.self_attn.q_proj"
COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture
def models(tmp_path: Path) -> MachineModels:
    return MachineModels(tmp_path / "hub")


def cached(cache: Path, name: str, width: int, ref: str = "main", commit: str = COMMIT) -> None:
    """A model as the hub's tools keep it: links into blobs."""
    place = cache / f"models--{name.replace('/', '--')}"
    base_model(place / "blobs" / commit, width)
    snapshot = place / "snapshots" / commit
    snapshot.mkdir(parents=True)
    for blob in (place / "blobs" / commit).iterdir():
        (snapshot / blob.name).symlink_to(os.path.relpath(blob, snapshot))
    (place / "refs").mkdir(exist_ok=True)
    (place / "refs" / ref).write_text(commit)


@pytest.mark.parametrize("files", [1, 3])
def test_a_directory_is_read_whole(models: MachineModels, tmp_path: Path, files: int) -> None:
    shapes = models.shapes(str(base_model(tmp_path / "model", 64, files=files)), "main")
    assert (shapes[Q], shapes["lm_head"], len(shapes)) == ((64, 64), (64, 100), 10)


def test_a_model_that_was_replaced_is_told_anew(models: MachineModels, tmp_path: Path) -> None:
    models.shapes(str(base_model(tmp_path / "model", 64)), "main")
    assert models.shapes(str(base_model(tmp_path / "model", 32)), "main")[Q] == (32, 32)


def test_what_ships_with_penstock_has_a_name(models: MachineModels) -> None:
    assert models.shapes("penstock-mini", "main")[Q] == (192, 192)
    assert {name: shipped(name) for name in shipped_models()} == shipped_models()


@pytest.mark.parametrize("name", ["acme/model", "model"])
def test_a_model_of_the_hub_is_read_where_it_is_cached(
    models: MachineModels, tmp_path: Path, name: str
) -> None:
    cached(tmp_path / "hub", name, 64)
    cached(tmp_path / "hub", name, 96, "v2", "f" * 40)
    assert models.shapes(name, "main")[Q] == (64, 64)
    assert models.shapes(name, "v2")[Q] == (96, 96)
    assert models.shapes(name, "v3") == {}


@pytest.mark.parametrize(
    "model", ["/nowhere", "acme/other", "penstock-other", "../up", "./here", "", "/a\0b", "a/b/c"]
)
def test_of_what_is_not_here_nothing_is_said(models: MachineModels, model: str) -> None:
    assert models.shapes(model, "main") == {}


def test_of_a_download_that_broke_off_nothing_is_said(
    models: MachineModels, tmp_path: Path
) -> None:
    assert models.shapes(str(base_model(tmp_path, files=3, missing=1)), "main") == {}


def test_of_weights_that_are_cut_off_nothing_is_said(models: MachineModels, tmp_path: Path) -> None:
    weights = base_model(tmp_path) / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1])
    assert models.shapes(str(tmp_path), "main") == {}


def test_a_pipe_in_the_place_of_weights_is_not_waited_for(
    models: MachineModels, tmp_path: Path
) -> None:
    os.mkfifo(base_model(tmp_path, files=1) / "more.safetensors")
    assert models.shapes(str(tmp_path), "main") == {}


def test_of_weights_in_other_formats_nothing_is_said(models: MachineModels, tmp_path: Path) -> None:
    (tmp_path / "pytorch_model.bin").write_bytes(b"weights")
    assert models.shapes(str(tmp_path), "main") == {}


def test_of_packed_weights_nothing_is_said(models: MachineModels, tmp_path: Path) -> None:
    write_weights(tmp_path / "model.safetensors", {f"{Q}.weight": (8, 8)}, dtype="I16")
    assert models.shapes(str(tmp_path), "main") == {}
