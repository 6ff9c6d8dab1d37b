"""The system that these tests share. Each leaves it able to serve the next."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.e2e.explained import Explained, explained


@pytest.fixture(scope="package")
def on_explained(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Explained]:
    """Where requests of all kinds are asked and explained."""
    with explained(tmp_path_factory.mktemp("explained")) as found:
        yield found
