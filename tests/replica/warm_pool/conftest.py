"""A pool of a file's own (`shared`), empty again after each test, and an agent beside it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.fakes.replica_agent import ReplicaAgent, replica_agent
from tests.fakes.warm_pool import Pool


@pytest.fixture
def pool(shared: Pool) -> Iterator[Pool]:
    yield shared
    shared.empty()


@pytest.fixture
def agent() -> Iterator[ReplicaAgent]:
    with replica_agent() as agent:
        yield agent
