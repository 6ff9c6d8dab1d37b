"""A world with one gateway in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.control.managers.fleet.gateway_process import GatewayCommand
from tests.control.managers.fleet.gateway_world import STATUS, World


@pytest.fixture
def world(tmp_path: Path) -> World:
    command = GatewayCommand(
        name="gw-1",
        binary=Path("/bin/penstock-gateway"),
        listen="127.0.0.1:8080",
        control="127.0.0.1:8082",
        data_dir=tmp_path,
        metrics=STATUS,
        threads=3,
    )
    return World(command)
