"""The native programs of the benchmark, as setup builds them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from penstock.evals.native import NativePrograms

NATIVE_BUILD = Path(__file__).resolve().parents[2] / "build" / "evals"


@pytest.fixture(scope="session")
def programs() -> NativePrograms:
    """The load client and the event source."""
    return NativePrograms(NATIVE_BUILD)


@pytest.fixture(scope="session")
def nginx_program() -> str:
    """Where nginx is installed."""
    found = shutil.which("nginx") or "/usr/sbin/nginx"
    assert Path(found).exists(), "nginx is not installed: run `make setup`"
    return found
