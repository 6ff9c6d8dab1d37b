"""What clients meet besides in the system that they share (`served`)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.clients.served import Served


@pytest.fixture(scope="session", autouse=True)
def _one_that_loads(served: Served) -> Iterator[None]:
    """A model that only loads."""
    with served.one_that_loads():
        yield
