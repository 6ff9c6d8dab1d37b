"""What the project installs: only the package penstock, each room where its path says."""

from __future__ import annotations

import importlib.util
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("control", "replica", "adapters", "evals")


def test_the_package_table_maps_every_room_to_its_path() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    packages = project["tool"]["scikit-build"]["wheel"]["packages"]
    assert packages == {f"penstock/{room}": f"{room}/penstock/{room}" for room in ROOMS}


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_is_imported_from_its_folder_and_is_typed(room: str) -> None:
    spec = importlib.util.find_spec(f"penstock.{room}")
    assert spec is not None
    assert spec.origin is not None
    assert Path(spec.origin).parent == ROOT / room / "penstock" / room
    assert (Path(spec.origin).parent / "py.typed").exists()


def test_penstock_stays_a_namespace() -> None:
    assert not [room for room in ROOMS if (ROOT / room / "penstock" / "__init__.py").exists()]


@pytest.mark.parametrize(
    "room", [*ROOMS, "proto", "gateway_cpp", "setup", "tools/default_model", "deploy/monitoring"]
)
def test_every_room_says_what_it_is(room: str) -> None:
    assert len((ROOT / room / "README.md").read_text()) > 500
