"""Real engines for all tests that only ask: starting one costs some 15 s."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from multiprocessing.forkserver import ensure_running

import psutil
import pytest
import pytest_asyncio

from penstock.replica.adapters.values import AdapterRoom
from penstock.replica.values import AdapterSource
from penstock.replica.vllm.engine import VllmEngine
from penstock.replica.vllm.start.environment import root_logger_kept
from tests.fakes.adapter_weights import FakeContents
from tests.fakes.engine_nursery import NurseryEngine
from tests.replica.vllm.pooling import Pooler

ADAPTERS = (
    AdapterSource("pirate@1", "penstock-mini/pirate"),
    AdapterSource("json@1", "penstock-mini/json"),
)

CONTENTS = FakeContents()

_SETTINGS = {
    # Long prompts come in several steps.
    "max_num_batched_tokens": "256",
    # A model this small may go on with line breaks for ever where a grammar lets it.
    "structured_outputs_config": '{"backend": "xgrammar", "disable_any_whitespace": true}',
}


@pytest.fixture(scope="module", autouse=True)
def _root_logger_kept() -> Iterator[None]:
    """What comes after these tests hears warnings again: stock vLLM is asked here too."""
    with root_logger_kept():
        yield


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def engine() -> AsyncIterator[VllmEngine]:
    """penstock-mini with both adapters in two slots. Stopping it must leave no process."""
    room = AdapterRoom(contents=CONTENTS)
    ensure_running()
    before = set(psutil.Process().children(recursive=True))
    engine = VllmEngine(
        "penstock-mini", "penstock-mini", ADAPTERS, _SETTINGS, room=room, forked=NurseryEngine()
    )
    try:
        await engine.start()
        yield engine
    finally:
        await engine.stop()
    left = set(psutil.Process().children(recursive=True)) - before
    assert [p for p in left if _is_of_an_engine(p)] == []


def _is_of_an_engine(process: psutil.Process) -> bool:
    try:
        return "resource_tracker" not in " ".join(process.cmdline())
    except (psutil.ZombieProcess, psutil.NoSuchProcess):  # it has ended
        return False


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def embedder() -> AsyncIterator[Pooler]:
    """penstock-embed as a user names it."""
    async with Pooler("penstock-embed") as pooler:
        yield pooler
