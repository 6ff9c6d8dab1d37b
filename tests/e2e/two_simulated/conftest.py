"""The system that these tests share. Each leaves it able to serve the next."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.e2e.system import System, running


@pytest.fixture(scope="package")
def two_simulated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    """Two simulated replicas that write 20 tokens a second to each stream."""
    settings = "tokens_per_second=20 answer_tokens=60 per_request=1"
    options = ("--engine", "simulated", "--name", "sim", "--engine-args", settings)
    folder = tmp_path_factory.mktemp("two_simulated")
    with running(folder, *options, replicas=2, within=60) as system:
        yield system
