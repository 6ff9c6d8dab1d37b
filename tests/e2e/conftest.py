"""Systems that several tests share. Each test leaves its system able to serve the next."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.clients.served import Served
from tests.e2e.system import System, running


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for one module's system."""
    return tmp_path_factory.mktemp("system")


@pytest.fixture(scope="session")
def shared_real(served: Served) -> System:
    """The default model on real vLLM, beside an embedder, for who leaves it as it was."""
    return served.system


@pytest.fixture(scope="module")
def real(folder: Path) -> Iterator[System]:
    """The default model on real vLLM, as `make serve` starts it."""
    with running(folder, within=180) as system:
        yield system
