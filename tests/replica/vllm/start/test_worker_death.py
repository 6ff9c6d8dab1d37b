"""An engine of two worker processes, one of which is killed under its calls."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator

import psutil
import pytest
import pytest_asyncio

from penstock.replica.vllm.engine import VllmEngine
from tests.replica.vllm.talking import CHAT, ask, long_request, until

pytestmark = [
    pytest.mark.vllm,
    pytest.mark.long,
    pytest.mark.timeout(600),
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning"),
]

_SETTINGS = {"tensor_parallel_size": "2", "cpu_kvcache_gib": "0.25"}


@pytest_asyncio.fixture
async def split() -> AsyncIterator[VllmEngine]:
    """An engine whose model is split over two processes."""
    engine = VllmEngine("penstock-mini", "penstock-mini", (), _SETTINGS)
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("VLLM_CPU_OMP_THREADS_BIND", "0|1")  # one core for each
        try:
            await engine.start()
            yield engine
        finally:
            await engine.stop()


def _processes(engine: VllmEngine) -> tuple[psutil.Process, list[psutil.Process]]:
    """The engine's core, and its workers."""
    assert engine._up is not None
    manager = engine._up.launched.llm.engine_core.resources.engine_manager
    core = psutil.Process(manager.processes[0].pid)
    below = core.children(recursive=True)
    return core, [p for p in below if "Worker" in " ".join(p.cmdline())]


async def test_the_death_of_one_of_two_workers_ends_the_engine_and_is_told_to_every_call(
    split: VllmEngine,
) -> None:
    core, workers = _processes(split)
    assert len(workers) == 2
    async with asyncio.TaskGroup() as tasks:
        death = tasks.create_task(split.died())
        calls = [tasks.create_task(ask(split, long_request(CHAT, stream=s))) for s in (True, False)]
        await until(lambda: split.load().running == 2, "both run")
        began = time.monotonic()
        workers[1].kill()
    assert time.monotonic() - began < 30
    assert "killed by signal 9" in str(death.result())
    for call in calls:
        failed = call.result().failed
        assert (failed.status, failed.code, failed.retryable) == (503, "engine_killed", False)
        assert b"[DONE]" not in call.result().body
    await split.stop()
    gone, alive = psutil.wait_procs([core, *workers], timeout=10)
    assert not alive, "nothing is left behind"
    assert len(gone) == 3
