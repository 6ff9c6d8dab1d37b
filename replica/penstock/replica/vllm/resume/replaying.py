"""The front end's half: what was delivered passes vLLM's own layers once more, group by group, and
the engine is asked for what comes after it.

It stands where a request goes to the engine: its states in the front end are there by then, made of
the prompt as it is. Detokenizers, stop strings held back, parsers and usage are so rebuilt by vLLM
itself; the engine's figures do not count what is replayed. Imports vLLM.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection
from copy import copy
from typing import Any, Final

import numpy as np
from vllm.v1.engine import EngineCoreOutput, FinishReason
from vllm.v1.engine.exceptions import EngineDeadError
from vllm.v1.metrics.stats import PrefillStats
from vllm.v1.outputs import LogprobsLists

from penstock.replica.values import TokenGroup
from penstock.replica.vllm.resume.continuation import BadResume, Begun, Continuation
from penstock.replica.vllm.resume.delivered import with_delivered

log = logging.getLogger(__name__)

_AT_ONCE: Final = 256
"""Groups that are read in one turn of the loop, at some 5 us each."""

Send = Callable[[Any], Awaitable[None]]


class ReplayFailed(Exception):
    """The replay broke for an error of its own, its cause: none of the client's."""


class Replaying:
    """Of one engine. `processor`: vLLM's of outputs; `process`: its method by which no others are
    told; `cached_blocks`: tokens of a block where prompts are kept for others, else 0."""

    def __init__(
        self, processor: Any, process: Callable[[Any], Any], send: Send, cached_blocks: int
    ) -> None:
        self._processor = processor
        self._states = processor.request_states
        self._process = process
        self._send = send
        self._cached_blocks = cached_blocks

    async def enter(self, continuation: Continuation, sequence: Any) -> list[str]:
        """One of the call's sequences enters the engine, which hears of it once the last one of its
        request is here: it gets those that have not ended. Names those that have. Raises
        `BadResume`, of whose request it has got nothing then, and `ReplayFailed`."""
        try:
            return await self._enter(continuation, sequence)
        except (BadResume, EngineDeadError):
            raise
        except Exception as error:
            log.exception("a replay broke", extra={"request_id": sequence.external_req_id})
            raise ReplayFailed(f"{type(error).__name__}: {error}") from error

    async def _enter(self, continuation: Continuation, sequence: Any) -> list[str]:
        begun = continuation.request(sequence.external_req_id)
        begun.sequences.append(sequence)
        if len(begun.sequences) < begun.choices:
            return []
        states = [self._states[one.request_id] for one in begun.sequences]
        await self._replay(continuation, begun, states)
        over = begun.finished()
        for choice, (one, state) in enumerate(zip(begun.sequences, states, strict=True)):
            if choice not in over:
                await self._go_on(begun, choice, one, state)
        if begun.outputs and states[0].queue.output is None:
            states[0].queue.put(_nothing_new(begun))
        ended = [begun.sequences[choice].request_id for choice in over]
        begun.sequences.clear()
        return ended

    async def _replay(self, continuation: Continuation, begun: Begun, states: list[Any]) -> None:
        prefill = self._prefill(begun, continuation)
        stops = begun.sequences[0].sampling_params.stop_token_ids or ()
        for count, (place, group) in enumerate(begun.groups, 1):
            choice = group.choice - begun.first
            state = states[choice]
            if state.request_id not in self._states:
                raise BadResume(f"choice {group.choice} ends before what was delivered of it")
            self._pass_again(_output(state, group, prefill, stops))
            output = state.queue.get_nowait()
            _check(group, output, ended=state.request_id not in self._states)
            begun.outputs.append((place, output))
            if not count % _AT_ONCE:
                await asyncio.sleep(0)

    def _pass_again(self, output: EngineCoreOutput) -> None:
        """Without a trace: vLLM makes it of figures, which the replay is not to move."""
        tracing, self._processor.tracing_enabled = self._processor.tracing_enabled, False
        try:
            self._process([output])
        finally:
            self._processor.tracing_enabled = tracing

    def _prefill(self, begun: Begun, continuation: Continuation) -> PrefillStats:
        """What the client was told of the prompt's first computation, as far as that is known."""
        cached = continuation.resume.cached_tokens if continuation.is_first(begun) else 0
        blocks = self._cached_blocks
        kept = begun.prompt_tokens // blocks * blocks if blocks else 0
        return PrefillStats(
            num_cached_tokens=cached, num_cache_creation_tokens=max(0, kept - cached)
        )

    async def _go_on(self, begun: Begun, choice: int, sequence: Any, state: Any) -> None:
        if ids := begun.ids(choice):
            sequence.sampling_params = with_delivered(sequence.sampling_params, ids)
            # Of this engine's own times and prompts it is one that begins.
            state.is_prefilling = True
        await self._send(sequence)


def _output(
    state: Any, group: TokenGroup, prefill: PrefillStats, stops: Collection[int]
) -> EngineCoreOutput:
    """What the engine would have said when it made the group."""
    ids = list(group.token_ids)
    reason, stop = _end(group, stops)
    wants = state.logprobs_processor.num_logprobs is not None
    return EngineCoreOutput(
        state.request_id,
        ids,
        new_logprobs=_unknown_logprobs(ids) if wants and ids else None,
        finish_reason=reason,
        stop_reason=stop,
        prefill_stats=prefill if state.is_prefilling else None,
    )


def _end(group: TokenGroup, stops: Collection[int]) -> tuple[FinishReason | None, int | str | None]:
    """How the engine ended the choice; what a stop string ends, the front end finds by itself."""
    if not group.finish_reason:
        return None, None
    reason = FinishReason[group.finish_reason.upper()]
    if reason is not FinishReason.STOP or not group.stop_reason:
        return reason, group.stop_reason or None
    last = group.token_ids[-1] if group.token_ids else None
    return (reason, last) if last in stops and group.stop_reason == str(last) else (None, None)


def _check(group: TokenGroup, output: Any, *, ended: bool) -> None:
    """Raises `BadResume` unless the front end made of the group what was delivered."""
    parts = [] if output is None else output.outputs
    ids = [one for part in parts for one in part.token_ids]
    if ids != list(group.token_ids) or ended != bool(group.finish_reason):
        raise BadResume(f"choice {group.choice} does not end where what was delivered of it does")


def _unknown_logprobs(ids: list[int]) -> LogprobsLists:
    """Stand for those of tokens whose events the client has."""
    column = np.array(ids, dtype=np.int64).reshape(-1, 1)
    return LogprobsLists(
        column, np.zeros(column.shape, dtype=np.float32), np.zeros(len(ids), dtype=np.int64)
    )


def _nothing_new(begun: Begun) -> Any:
    """Wakes whoever waits for the request's outputs."""
    _, last = begun.outputs[-1]
    nothing = copy(last)
    nothing.outputs = []
    nothing.finished = begun.is_over()
    return nothing
