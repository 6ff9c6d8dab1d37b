"""What holds for every test of the project."""

from __future__ import annotations

import gc
import logging
import os
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings
from xdist.scheduler import LoadScopeScheduling

if TYPE_CHECKING:
    from tests.clients.served import Served
    from tests.fakes.warm_pool import Pool

# What collecting makes is no garbage (`pytest_collection_finish`).
gc.disable()

# A busy machine is no failure: how long one example takes is not what property tests are about.
settings.register_profile("random", deadline=None, suppress_health_check=[HealthCheck.too_slow])
# A change fails for what it changes: with the same examples each time. `tests/long` has others, and
# twice as many.
settings.register_profile(
    "penstock", settings.get_profile("random"), derandomize=True, max_examples=50
)
settings.load_profile("penstock")


# Nodes fill no warm pool beside a test; those that are about one say so.
os.environ.setdefault("PENSTOCK_WARM", "0")

_ON_ONE_SYSTEM = {
    f"tests/e2e/test_{name}.py"
    for name in ("openapi", "real_adapters", "real_engines", "real_microserving", "sdk")
}
"""Which files share the clients' system, which takes long to start (`served`)."""

_LONGEST = {
    "tests/e2e/two_simulated",
    *(
        f"tests/e2e/test_{name}.py"
        for name in (
            *("overload", "several_gateways", "canaries", "kill_matrix", "hand_over", "serve"),
            *("router_programs", "suspects"),
        )
    ),
}
"""Groups that take half a minute or more with few tests: begun last, they would be waited for."""

_APART = {
    "tests/e2e/test_overload.py::test_five_times_as_many_clients_as_places_are_served_in_turn",
    "tests/e2e/test_several_gateways.py::"
    "test_long_requests_stay_within_the_limit_though_load_moves_from_gateway_to_gateway",
}
"""Tests that take as long as the rest of their file."""


def group_of(nodeid: str) -> str:
    """Which tests stay together when several workers share them (`-n 2`).

    A file stays whole, for its module's fixtures, but for what takes long (`_APART`); so do the
    contracts, for the replica that they share, the SDKs and the folders of `tests/e2e`, for their
    systems, and all that start vLLM, since an engine wants the machine's memory and cores to
    itself. Each line of the README starts a system of its own.
    """
    path, _, test = nodeid.partition("::")
    if path == "tests/e2e/test_readme_starts.py" or nodeid in _APART:
        return nodeid
    folder = path.rpartition("/")[0]
    if folder.startswith("tests/replica/vllm") or path.endswith("test_vllm_pool.py"):
        return "vllm"
    if folder == "tests/contracts" and "vllm" in test:
        return "vllm"
    if path in _ON_ONE_SYSTEM or folder == "tests/clients/sdk":
        return "one system"
    whole = folder == "tests/contracts" or folder.startswith("tests/e2e/")
    return folder if whole else path


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object:
    """Deals out whole groups, by the tests' names: the marks that `--dist loadgroup` goes by reach
    xdist no more since pytest 9.2, and single tests are dealt out (pytest-xdist, issue 1386).
    """
    config.option.loadscopereorder = False  # as `pytest_collection_modifyitems` has it
    scheduler = LoadScopeScheduling(config, log)
    scheduler._split_scope = group_of
    return scheduler


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves out what is marked `long`, unless `-m` asks for it: CI never runs it. Workers take the
    groups that are likely to take longest first.
    """
    if "long" not in config.option.markexpr:
        left_out = [item for item in items if item.get_closest_marker("long")]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if not item.get_closest_marker("long")]
    if hasattr(config, "workerinput"):
        sizes = Counter(group_of(item.nodeid) for item in items)
        items.sort(key=lambda item: _rank(group_of(item.nodeid), sizes))


def _rank(group: str, sizes: Counter[str]) -> tuple[bool, int]:
    return group not in _LONGEST | _APART, -sizes[group]


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One system for all clients, and for who leaves it as it was (`group_of` names those files):
    the default model as `make serve` starts it, and an embedder. What is started later comes out
    of a warm pool, as it does for users, for a quarter of a start's CPU."""
    from tests.clients.served import EMBEDDER, EMBEDDER_SPEC, Served
    from tests.e2e.engine_cycles import filled
    from tests.e2e.system import running
    from tests.fakes.ports import free_address, free_ports

    (page_port,) = free_ports(1)
    options = (
        *("--warm", "2", "--cors-origin", f"http://127.0.0.1:{page_port}"),
        *("--node-metrics", free_address()),
    )
    with running(tmp_path_factory.mktemp("served"), *options, within=180) as system:
        with suppress(AssertionError):  # on a machine too busy for it, they start cold
            filled(system, within=60)
        served = Served(system, page_port)
        served.deploy(EMBEDDER, EMBEDDER_SPEC)
        served.ready_replica(EMBEDDER)
        yield served


@pytest.fixture(scope="session")
def vllm_pool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pool]:
    """One process that has imported vLLM, for all whose replicas need not be started cold: a claim
    takes two seconds of CPU, a start eight. Its replicas write into their logs what they import.
    """
    from tests.fakes.warm_pool import running_pool

    log = tmp_path_factory.mktemp("pool") / "warm-pool.log"
    with running_pool("vllm", log, {"PYTHONPROFILEIMPORTTIME": "1"}) as (pool, said):
        assert (said["vllm"][:5], said["device"]) == ("0.32.", "cpu")
        yield pool


def pytest_runtest_setup() -> None:
    """Each test begins with the root logger's own level, whatever was imported or tested before it:
    a library that vLLM's server imports sets it to ERROR, and warnings are then seen by nobody.
    """
    logging.getLogger().setLevel(logging.WARNING)


def pytest_collection_finish() -> None:
    """Keeps the garbage collector from what all test files and their libraries have made by now.

    It stays to the end, and to look it through again and again takes a fifth of the time of tests
    that make much garbage, as those of the admin API do.
    """
    gc.collect()
    gc.freeze()
    gc.enable()
