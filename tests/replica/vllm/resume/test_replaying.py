"""The replay in a front end that only records: what it is given, and what comes of its troubles."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import pytest

from penstock.replica.values import Resume, TokenGroup
from penstock.replica.vllm.resume.continuation import BadResume, Bounds, Continuation

pytestmark = [
    pytest.mark.vllm,
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning"),
]

_GROUPS = (TokenGroup(0, (7,)), TokenGroup(0, (8,), "length"))


class _FrontEnd:
    """Stands for vLLM's output processor, of one request "r"; `met` is called for each output."""

    def __init__(self, met: Callable[[], None]) -> None:
        self.tracing_enabled = True
        self.traced: list[bool] = []
        self._met = met
        self._made: list[Any] = []
        queue = SimpleNamespace(get_nowait=self._made.pop, output=object())
        logprobs = SimpleNamespace(num_logprobs=None)
        state = {"queue": queue, "logprobs_processor": logprobs, "is_prefilling": False}
        self.request_states = {"r": SimpleNamespace(request_id="r", **state)}

    def process(self, outputs: list[Any]) -> None:
        """Makes of an output what the replay looks at."""
        self._met()
        self.traced.append(self.tracing_enabled)
        for each in outputs:
            self._made.append(
                SimpleNamespace(outputs=[SimpleNamespace(token_ids=each.new_token_ids)])
            )
            if each.finish_reason is not None:
                del self.request_states[each.request_id]


async def _replayed(front: _FrontEnd) -> list[str]:
    from penstock.replica.vllm.resume.replaying import Replaying

    async def send(_: Any) -> None:
        raise AssertionError("a request that has ended goes to no engine")

    continuation = Continuation(Resume(_GROUPS, 2, 0, 0))
    continuation.begin("r", 0, 1, 5, Bounds(100, 2, 20))
    parameters = SimpleNamespace(stop_token_ids=[])
    sequence = SimpleNamespace(request_id="r", external_req_id="r", sampling_params=parameters)
    replaying = Replaying(front, front.process, send, 0)
    return await replaying.enter(continuation, sequence)


async def test_an_end_that_is_replayed_is_not_traced_and_what_comes_later_is() -> None:
    """vLLM makes a trace of figures, which a replay does not have."""
    front = _FrontEnd(lambda: None)
    assert await _replayed(front) == ["r"]
    assert front.traced == [False, False]
    assert front.tracing_enabled


def _raising(error: BaseException | tuple[str, str]) -> Callable[[], None]:
    """`error`: vLLM's by module and name, which are looked for when the test runs."""

    def raises() -> None:
        if isinstance(error, tuple):
            raise getattr(import_module(error[0]), error[1])("no")
        raise error

    return raises


@pytest.mark.parametrize(
    "error", [ValueError("no"), TypeError(), ("vllm.exceptions", "VLLMValidationError")]
)
async def test_a_replay_that_breaks_is_no_fault_of_the_clients(
    error: Exception | tuple[str, str],
) -> None:
    from penstock.replica.vllm.failures import exceptions
    from penstock.replica.vllm.resume.replaying import ReplayFailed

    front = _FrontEnd(_raising(error))
    with pytest.raises(ReplayFailed) as raised:
        await _replayed(front)
    failed = exceptions.not_generated(raised.value, begun=False)
    assert (failed.code, failed.fault, failed.status) == ("internal_error", "upstream", 500)
    assert front.tracing_enabled


@pytest.mark.parametrize("error", [BadResume("no"), asyncio.CancelledError()])
async def test_what_has_a_meaning_of_its_own_keeps_it(error: BaseException) -> None:
    with pytest.raises(type(error)):
        await _replayed(_FrontEnd(_raising(error)))


async def test_a_dead_engine_stays_a_dead_engine() -> None:
    from vllm.v1.engine.exceptions import EngineDeadError

    with pytest.raises(EngineDeadError):
        await _replayed(_FrontEnd(_raising(EngineDeadError())))
