"""What tests of the admin API only read."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from tests.control.admin import reference


@pytest.fixture(scope="session")
def document() -> Mapping[str, Any]:
    """The API's own, which takes most of a second to make, and is the same of each app."""
    return asyncio.run(reference.document())
