"""What holds for every test of the project."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings

# A busy machine is no failure: how long one example takes is not what property tests are about.
settings.register_profile("penstock", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("penstock")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Says which tests stay together when several workers share them (`-n 2 --dist loadgroup`).

    A file stays whole, for its module's fixtures; so do the contracts, for the replica that they
    share, and all that start vLLM, since an engine wants the machine's memory and cores to itself.
    """
    for item in items:
        item.add_marker(pytest.mark.xdist_group(_group(item)))


def _group(item: pytest.Item) -> str:
    if item.get_closest_marker("vllm"):
        return "vllm"
    return str(item.path.parent if item.path.parent.name == "contracts" else item.path)
