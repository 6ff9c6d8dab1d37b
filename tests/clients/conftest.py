"""One system for all clients: starting it costs more than most tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.clients.served import EMBEDDER, EMBEDDER_SPEC, Served
from tests.e2e.system import running
from tests.fakes.ports import free_ports


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """The default model as `make serve` starts it, an embedder, and a model that only loads."""
    (page_port,) = free_ports(1)
    cors = ("--cors-origin", f"http://127.0.0.1:{page_port}")
    with running(tmp_path_factory.mktemp("served"), *cors, within=180) as system:
        served = Served(system, page_port)
        served.deploy(EMBEDDER, EMBEDDER_SPEC)
        served.ready_replica(EMBEDDER)
        with served.one_that_loads():
            yield served
