"""Systems that several tests share. Each test leaves its system able to serve the next."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.clients.served import Served
from tests.e2e.explained import Explained, explained
from tests.e2e.system import System, running


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for one module's system."""
    return tmp_path_factory.mktemp("system")


@pytest.fixture(scope="session")
def two_simulated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    """Two simulated replicas that write 20 tokens a second to each stream (`group_of` names the
    files that share it)."""
    settings = "tokens_per_second=20 answer_tokens=60 per_request=1"
    options = ("--engine", "simulated", "--name", "sim", "--engine-args", settings)
    folder = tmp_path_factory.mktemp("two_simulated")
    with running(folder, *options, replicas=2, within=60) as system:
        yield system


@pytest.fixture(scope="session")
def on_explained(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Explained]:
    """Where requests of all kinds are asked and explained (`group_of` names the files)."""
    with explained(tmp_path_factory.mktemp("explained")) as found:
        yield found


@pytest.fixture(scope="session")
def shared_real(served: Served) -> System:
    """The default model on real vLLM, beside an embedder, for who leaves it as it was."""
    return served.system


@pytest.fixture(scope="module")
def real(folder: Path) -> Iterator[System]:
    """The default model on real vLLM, as `make serve` starts it."""
    with running(folder, within=180) as system:
        yield system
