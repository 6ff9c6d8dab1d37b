"""An error while the engine's outputs are taken ends the replica, and says what it was."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from penstock.replica.values import Death

pytestmark = [
    pytest.mark.vllm,
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning"),
]


def _llm(error: Exception) -> tuple[Any, list[BaseException]]:
    """A client whose engine's next outputs cannot be taken, and whom vLLM tells of it."""
    from penstock.replica.vllm.serving.client import TappedLLM

    told: list[BaseException] = []

    async def get_output_async() -> None:
        raise error

    llm: Any = TappedLLM.__new__(TappedLLM)
    llm.engine_core = SimpleNamespace(
        get_output_async=get_output_async, add_request_async=get_output_async
    )
    llm.output_processor = SimpleNamespace(
        propagate_error=told.append,
        add_request=told.append,
        process_outputs=told.append,
        abort_requests=told.append,
        request_states={},
    )
    scheduler = SimpleNamespace(
        max_num_seqs=64,
        max_num_batched_tokens=512,
        max_num_queued_reqs=None,
        max_num_queued_tokens=None,
    )
    parallel = SimpleNamespace(data_parallel_size=1)
    cache = SimpleNamespace(enable_prefix_caching=False, block_size=16)
    llm.vllm_config = SimpleNamespace(
        scheduler_config=scheduler, parallel_config=parallel, cache_config=cache
    )
    llm.scheduler_config = scheduler
    llm.renderer = SimpleNamespace(mm_processor_cache=None)
    llm.log_stats, llm.logger_manager, llm.output_handler = False, None, None
    return llm, told


async def _end(llm: Any) -> None:
    llm._run_output_handler()
    llm._run_output_handler()  # as each request does
    await asyncio.wait_for(llm.output_handler, 10)


async def test_want_of_memory_there_is_kept_as_the_cause() -> None:
    llm, told = _llm(MemoryError("no room"))
    await _end(llm)
    assert isinstance(llm.fault, MemoryError)
    assert told == [llm.fault], "every request aboard hears of it, once"


async def test_the_engines_own_death_is_left_to_those_who_know_its_cause() -> None:
    from vllm.v1.engine.exceptions import EngineDeadError

    llm, told = _llm(EngineDeadError())
    await _end(llm)
    assert llm.fault is None
    assert len(told) == 1


async def test_requests_aboard_are_told_that_the_engine_died_and_of_what() -> None:
    from vllm.v1.engine.exceptions import EngineGenerateError

    from penstock.replica.vllm.serving.tap import CallTap
    from tests.replica.vllm.talking import call

    async def outputs() -> Any:
        raise EngineGenerateError from MemoryError("no room")
        yield

    llm, _ = _llm(MemoryError("no room"))
    llm.death = lambda: Death("its outputs could not be taken: MemoryError", killed=True)
    await _end(llm)
    tap = CallTap(call(b""))
    tap.entered(SimpleNamespace())
    with pytest.raises(EngineGenerateError):
        async for _ in llm._tapped(tap, "r", lambda priority: outputs(), 0, print):
            pass
    assert tap.lost is not None
    assert (tap.lost.code, tap.lost.retryable) == ("engine_killed", False)
    assert "could not be taken: MemoryError" in tap.lost.message


async def test_requests_that_wait_before_the_engine_hear_of_its_death_as_others_may_answer() -> (
    None
):
    from vllm.v1.engine.exceptions import EngineDeadError

    from penstock.replica.vllm.fairness.seats import Ticket
    from penstock.replica.vllm.serving.tap import CallTap
    from tests.replica.vllm.talking import call

    async def outputs() -> Any:
        raise EngineDeadError
        yield

    llm, _ = _llm(EngineDeadError())
    llm.death = lambda: Death("killed", killed=True)
    tap = CallTap(call(b"", tenant="rude"))

    async def held() -> None:
        tapped = llm._tapped(tap, "r", lambda priority: outputs(), 0, print)
        async for _ in llm._seated(tap, Ticket("rude", tap), tapped):
            pass

    async with llm.gate.passed(Ticket("rude", "running", wants=72)):
        waiting = asyncio.ensure_future(held())
        while not llm.gate.held()[0]:
            await asyncio.sleep(0)
        await _end(llm)
        with pytest.raises(EngineDeadError):
            await asyncio.wait_for(waiting, 10)
    assert tap.lost is not None
    assert (tap.lost.code, tap.lost.retryable) == ("engine_killed", True)
    assert llm.gate.held() == (0, 0)
