"""An error while the engine's outputs are taken ends the replica, and says what it was."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from penstock.replica.engine import Death

pytestmark = [
    pytest.mark.vllm,
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning"),
]


def _llm(error: Exception) -> tuple[Any, list[BaseException]]:
    """A client whose engine's next outputs cannot be taken, and whom vLLM tells of it."""
    from penstock.replica.vllm.client import TappedLLM

    told: list[BaseException] = []

    async def get_output_async() -> None:
        raise error

    llm: Any = TappedLLM.__new__(TappedLLM)
    llm.engine_core = SimpleNamespace(get_output_async=get_output_async)
    processor = SimpleNamespace(propagate_error=told.append, add_request=told.append)
    llm.output_processor = processor
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

    from penstock.replica.vllm.tap import CallTap
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
