"""An engine that is full, and one that dies under its calls."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import AsyncIterator
from typing import Any

import psutil
import pytest
import pytest_asyncio

from penstock.replica.adapters.values import AdapterUnavailable
from penstock.replica.endings import EngineHung
from penstock.replica.reporting.health import Health
from penstock.replica.reporting.progress import Patience
from penstock.replica.values import AdapterSource, EngineError
from penstock.replica.vllm.engine import VllmEngine
from tests.fakes.engine_nursery import NurseryEngine
from tests.replica.vllm.talking import (
    CHAT,
    MESSAGES,
    RESPONSES,
    Answer,
    ask,
    chat,
    long_request,
    until,
)

pytestmark = [
    pytest.mark.vllm,
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning"),
]

_SETTINGS = {
    "max_num_queued_reqs": "8",
    "cpu_kvcache_gib": "0.25",
}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def mortal() -> AsyncIterator[VllmEngine]:
    """An engine that may be killed: a short queue, no adapters."""
    engine = VllmEngine("penstock-mini", "penstock-mini", (), _SETTINGS, forked=NurseryEngine())
    with pytest.MonkeyPatch.context() as environment:
        # So that a test can run a function of its own in the engine's process.
        environment.setenv("VLLM_ALLOW_INSECURE_SERIALIZATION", "1")
        try:
            await engine.start()
            await until(lambda: engine.no_resume() is not None, "its self-test's end")
            yield engine
        finally:
            await engine.stop()


def _process(engine: VllmEngine) -> psutil.Process:
    assert engine._up is not None
    manager = engine._up.launched.llm.engine_core.resources.engine_manager
    return psutil.Process(manager.processes[0].pid)


async def test_an_engine_without_adapters_says_what_it_would_need(mortal: VllmEngine) -> None:
    with pytest.raises(AdapterUnavailable, match="takes no adapters; set max_adapters"):
        await mortal.adapters.load(AdapterSource("pirate@1", "penstock-mini/pirate"))


async def test_a_full_queue_refuses_so_that_another_replica_may_answer(mortal: VllmEngine) -> None:
    content = chat(max_tokens=200, ignore_eos=True, stream=True)
    answers = await asyncio.gather(*(ask(mortal, content) for _ in range(12)))
    refused = [answer.failed for answer in answers if answer.head is None]
    assert len(refused) == 4
    assert {(f.status, f.code, f.retryable, f.fault) for f in refused} == {
        (503, "overloaded", True, "upstream")
    }


def _work(worker: Any, seconds: float) -> None:
    """In the engine's process: one long step."""
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass


async def test_an_engine_at_work_on_one_long_step_is_no_hung_one(mortal: VllmEngine) -> None:
    assert mortal._up is not None
    llm = mortal._up.launched.llm
    patience = Patience(idle=1.0, busy=60)
    async with asyncio.TaskGroup() as tasks:
        watch = tasks.create_task(Health(mortal, "penstock-mini").watch(0.1, patience))
        await llm.collective_rpc(_work, args=(3.0,))
        assert not watch.done()
        watch.cancel()


async def test_an_engine_that_is_stopped_half_way_hangs(mortal: VllmEngine) -> None:
    process = _process(mortal)
    process.suspend()
    try:
        watch = Health(mortal, "penstock-mini").watch(0.1, Patience(idle=1.0, busy=60))
        with pytest.raises(EngineHung, match="no progress and used no CPU for 1 s"):
            await asyncio.wait_for(watch, 30)
    finally:
        process.resume()
    await mortal.probe()


async def test_a_dying_engine_is_told_of_by_every_call_at_once_with_where_it_was(
    mortal: VllmEngine,
) -> None:
    paths = (CHAT, RESPONSES, MESSAGES)
    async with asyncio.TaskGroup() as tasks:
        death = tasks.create_task(mortal.died())
        calls = [
            tasks.create_task(ask(mortal, long_request(path, stream=stream), path))
            for path in paths
            for stream in (True, False)
        ]
        await until(lambda: mortal.load().running == 6, "all calls run")
        began = time.monotonic()
        _process(mortal).send_signal(signal.SIGILL)
    assert time.monotonic() - began < 2.0
    assert "signal 4 (SIGILL), in " in str(death.result())
    assert ".py, line " in str(death.result())
    for answer in [call.result() for call in calls]:
        _is_told_dead(answer)
    assert [bool(call.result().body) for call in calls] == [True, False] * 3


async def test_a_dead_engine_refuses_new_calls_and_probes(mortal: VllmEngine) -> None:
    failed = (await ask(mortal, chat())).failed
    assert (failed.code, failed.retryable) == ("engine_dead", True), "it was never aboard"
    with pytest.raises(EngineError, match="the engine died"):
        await mortal.probe()


def _is_told_dead(answer: Answer) -> None:
    failed = answer.failed
    assert (failed.status, failed.code, failed.retryable) == (503, "engine_dead", False)
    assert failed.fault == "upstream"
    for end in (b"[DONE]", b"event: message_stop", b"event: response.completed", b"event: error"):
        assert end not in answer.body
    assert b'"error":{' not in answer.body
