"""vLLM's engine client with the tap on it: what the serving layer calls to generate or to pool.

Imports vLLM: only after `environment.prepare`.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import defaultdict
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager
from functools import cached_property, partial
from typing import Any, Final, NoReturn
from uuid import uuid4

from vllm.exceptions import VLLMValidationError
from vllm.pooling_params import PoolingParams
from vllm.sampling_params import RequestOutputKind
from vllm.v1.engine.async_llm import AsyncLLM
from vllm.v1.engine.exceptions import EngineDeadError, EngineGenerateError

from penstock.replica.values import BEFORE_ALL, Death, EngineError, Failed
from penstock.replica.vllm.failures import errors, exceptions
from penstock.replica.vllm.fairness.gate import Gate
from penstock.replica.vllm.fairness.seats import Seats, Ticket
from penstock.replica.vllm.fairness.turns import Line
from penstock.replica.vllm.guards import budgets, limits
from penstock.replica.vllm.resume.continuation import BadResume, Begun, Bounds
from penstock.replica.vllm.resume.kinds import can_be_resumed
from penstock.replica.vllm.resume.replaying import Replaying
from penstock.replica.vllm.serving import streams
from penstock.replica.vllm.serving.aside import Aside
from penstock.replica.vllm.serving.logprobs import PutOff
from penstock.replica.vllm.serving.tap import CURRENT, CallTap

_STEPS_AHEAD: Final = 4
"""Steps of the engine that one call's texts may fill while others of its texts wait."""

_AT_ONCE: Final = 16
"""Texts of one call that enter the engine in one turn of the loop, at some 0.2 ms each."""

_PLACE_BITS: Final = 32

Saw = Callable[[Any], None]
"""What a tap does with an output of one request."""

Outputs = AsyncGenerator[Any, None]

Ask = Callable[..., Outputs]
"""Asks the engine, given a priority."""


class TappedLLM(AsyncLLM):  # type: ignore[misc]
    """AsyncLLM whose outputs pass the tap of the call they belong to."""

    death: Callable[[], Death]
    """Says why the engine is dead."""

    aside: Aside
    """Where large answers are made."""

    resumes = True
    """Whether answers may be gone on with elsewhere, as far as the engine goes."""

    fault: BaseException | None = None
    """What ended the taking of the engine's outputs, where it was not the engine's death."""

    @cached_property
    def lines(self) -> defaultdict[int, Line]:
        """Whose turn it is in the engine's queue, by priority."""
        return defaultdict(Line)

    @cached_property
    def gate(self) -> Gate:
        """Who may be in the engine."""
        config = self.vllm_config
        engines = config.parallel_config.data_parallel_size
        sequences = config.scheduler_config.max_num_seqs * engines
        step_tokens = config.scheduler_config.max_num_batched_tokens * engines
        return Gate(Seats(sequences, step_tokens), time.monotonic)

    def _run_output_handler(self) -> None:
        if self.output_handler is None:
            self._go_on_after_others()
            self._see_what_enters()
            self._see_what_leaves()
            propagate = self.output_processor.propagate_error

            def kept(error: BaseException) -> None:
                if not isinstance(error, EngineDeadError):
                    self.fault = error
                propagate(error)
                self.gate.give_up()

            self.output_processor.propagate_error = kept
        super()._run_output_handler()

    def _go_on_after_others(self) -> None:
        """What another replica began passes the output processor once more before the engine gets
        the rest; see `resume/replaying.py`."""
        processor, send = self.output_processor, self.engine_core.add_request_async
        cache = self.vllm_config.cache_config
        blocks = cache.block_size if cache.enable_prefix_caching else 0
        replaying = Replaying(processor, processor.process_outputs, send, blocks)

        async def entered(request: Any) -> Any:
            tap = CURRENT.get()
            if tap is None or tap.continuation is None:
                return await send(request)
            try:
                self.gate.ended(await replaying.enter(tap.continuation, request))
            except BaseException:
                # vLLM would keep the states of a request that never got to its engine.
                await self.abort(request.request_id, internal=True)
                raise

        self.engine_core.add_request_async = entered

    def _see_what_enters(self) -> None:
        """Shows each call's tap what vLLM keeps of the call's requests."""
        processor = self.output_processor
        add = processor.add_request

        def seen(request: Any, *args: Any, **more: Any) -> None:
            add(request, *args, **more)
            self.gate.entered(request.request_id)
            if (tap := CURRENT.get()) is not None:
                state = processor.request_states[request.request_id]
                many = tap.logprobs > limits.MAX_ON_LOOP
                if many and request.sampling_params.prompt_logprobs is not None:
                    PutOff(state.logprobs_processor)
                tap.entered(state)

        processor.add_request = seen

    def _see_what_leaves(self) -> None:
        """Tells the gate which sequences the engine has begun, and which it has no more."""
        processor = self.output_processor
        process, abort = processor.process_outputs, processor.abort_requests

        def processed(outputs: Any, *args: Any, **more: Any) -> Any:
            result = process(outputs, *args, **more)
            self.gate.began(output.request_id for output in outputs if output.new_token_ids)
            names = (output.request_id for output in outputs)
            self.gate.ended(name for name in names if name not in processor.request_states)
            return result

        def aborted(*args: Any, **more: Any) -> Any:
            names = abort(*args, **more)
            self.gate.ended(names)
            return names

        processor.process_outputs, processor.abort_requests = processed, aborted

    def generate(
        self,
        prompt: Any,
        sampling_params: Any,
        request_id: str,
        *,
        priority: int = 0,
        **more: Any,
    ) -> Outputs:
        tap = CURRENT.get()
        if tap is not None:
            _keep_to_budget(tap, prompt, sampling_params)
            self._keep_to_logprobs(tap, prompt, sampling_params)
            if (instead := tap.instead(prompt)) is not None:
                return tap.opened(instead)
            if tap.beside:
                more_args = sampling_params.extra_args or {}
                sampling_params.extra_args = {**more_args, "kv_transfer_params": tap.beside}
        ask: Ask = partial(super().generate, prompt, sampling_params, request_id, **more)
        if tap is None:
            return ask(priority=_ranked(priority))
        constrained = sampling_params.structured_outputs is not None
        first = tap.begin(sampling_params.n, constrained=constrained)
        tokens, over = _tokens(prompt), False
        apart = streams.note_kind(tap, prompt, sampling_params, resumes=self.resumes)
        if tap.continuation is not None:
            begun = self._go_on(tap, request_id, first, prompt, sampling_params)
            tokens, over = tokens + begun.read_each(), begun.is_over()
            ask = partial(streams.replayed_first, tap, request_id, ask)
        saw = partial(tap.saw, first)
        outputs = self._tapped(tap, request_id, ask, priority, _seen_later if apart else saw)
        if apart:
            outputs = streams.one_by_one(tap, saw, outputs)
        if priority > BEFORE_ALL and not over:
            owner = (tap.call.tenant, tap)
            ticket = Ticket(*owner, sampling_params.n, priority, tokens)
            outputs = self._seated(tap, ticket, outputs)
        turns = first // _AT_ONCE
        return tap.opened(self._later(turns, outputs) if turns else outputs)

    def _go_on(
        self, tap: CallTap, request_id: str, first: int, prompt: Any, sampling_params: Any
    ) -> Begun:
        """Begins a request of which another replica has delivered something."""
        assert tap.continuation is not None
        if not can_be_resumed(tap.call.path, prompt, sampling_params):
            _refuse(tap, errors.cannot_resume())
        model, tokens = self.model_config, _tokens(prompt)
        most = (sampling_params.max_tokens or model.max_model_len, model.max_model_len)
        bounds = Bounds(model.get_vocab_size(), *most)
        try:
            return tap.continuation.begin(request_id, first, sampling_params.n, tokens, bounds)
        except BadResume as error:
            _refuse(tap, errors.bad_resume(str(error)))

    def _keep_to_logprobs(self, tap: CallTap, prompt: Any, sampling_params: Any) -> None:
        """Refuses prompts, of each token of which too many log probabilities are to be told."""
        wanted = sampling_params.prompt_logprobs
        if wanted is None:
            return
        each = 1 + (wanted if wanted >= 0 else self.model_config.get_vocab_size())
        tap.logprobs += each * _tokens(prompt) * sampling_params.n
        streamed = sampling_params.output_kind is RequestOutputKind.DELTA
        most = limits.MAX_ON_LOOP if streamed else limits.MAX_LOGPROBS
        if tap.logprobs > most:
            field = "prompt_logprobs" if b"prompt_logprobs" in tap.call.body else "logprobs"
            _refuse(tap, errors.too_many_logprobs(tap.logprobs, most, field))

    def encode(
        self,
        prompt: Any,
        pooling_params: Any,
        request_id: str,
        *,
        priority: int = 0,
        **more: Any,
    ) -> Outputs:
        ask = partial(super().encode, prompt, pooling_params, request_id, **more)
        tap = CURRENT.get()
        if tap is None:
            outputs: Outputs = ask(priority=_ranked(priority))
            return outputs
        room = tap.room(_STEPS_AHEAD * self.vllm_config.scheduler_config.max_num_batched_tokens)
        taken = room.taken(len(prompt.get("prompt_token_ids") or ()))
        saw = partial(tap.saw_pooled, tap.begin(1))
        tapped = self._tapped(tap, request_id, ask, priority, saw)
        return tap.opened(self._in_turn(taken, tapped))

    async def _later(self, turns: int, outputs: Outputs) -> Outputs:
        """The outputs, asked for after so many turns of the loop."""
        async with contextlib.aclosing(outputs):
            for _ in range(turns):
                await asyncio.sleep(0)
            async for output in outputs:
                yield output

    async def _seated(self, tap: CallTap, ticket: Ticket, outputs: Outputs) -> Outputs:
        """The outputs, once the request may be in the engine."""
        held, _ = self.gate.held()
        self.check_admission(held + ticket.wants)  # as if those that wait were in its queue
        async with self.gate.passed(ticket) as waited, contextlib.aclosing(outputs):
            tap.held_us = round(waited * 1e6)
            async for output in outputs:
                yield output

    async def _in_turn(self, taken: AbstractAsyncContextManager[None], outputs: Outputs) -> Outputs:
        """The outputs, once the call has room in the engine for one more of its texts."""
        async with taken, contextlib.aclosing(outputs):
            async for output in outputs:
                yield output

    async def _tapped(
        self, tap: CallTap, request_id: str, ask: Ask, priority: int, saw: Saw
    ) -> Outputs:
        """The outputs of a request that stands in the engine's queue where its tenant's turn is."""
        line = self.lines[priority]
        with line.place(tap.call.tenant) as place:
            rank = _ranked(priority, place)
            async with contextlib.aclosing(ask(priority=rank)) as outputs:
                try:
                    async for output in outputs:
                        line.reached(place)
                        if tap.moved and output.num_cached_tokens:
                            output.num_cached_tokens = tap.cached_before(output.num_cached_tokens)
                        saw(output)
                        if isinstance(late := getattr(output, "prompt_logprobs", None), PutOff):
                            await self.aside.surely(late.make)
                        yield output
                except (EngineDeadError, EngineGenerateError, BadResume) as error:
                    await self._lose(tap, request_id, error)
                    raise

    async def _lose(self, tap: CallTap, request_id: str, error: Exception) -> None:
        """Notes what the loss of a request means for its call."""
        if isinstance(error, EngineDeadError) or self.fault is not None:
            # After a fault no answer comes any more, and any request aboard may be what did it.
            tap.lost = errors.engine_dead(self.death(), aboard=tap.aboard())
            return
        cause = error.__cause__ or error
        if isinstance(cause, BadResume):
            tap.lost = errors.bad_resume(str(cause))
            return
        tap.lost = exceptions.not_generated(cause, tap.call.body, begun=tap.head_known())
        # vLLM keeps the state of a request that could not be handed to its engine.
        await self.abort(request_id)

    def end_calls(self) -> None:
        """Tells calls that still wait that the engine is dead. In their loop, after `shutdown`,
        which may cancel the task that would tell them before it does."""
        self.output_processor.propagate_error(EngineDeadError())

    def __del__(self) -> None:
        # Whoever made the engine shuts it down; AsyncLLM's own __del__ does so once more, at a
        # time when the interpreter may be half gone.
        pass


def _seen_later(_: Any) -> None:
    """What passes is seen where it passes one by one."""


def _ranked(priority: int, place: int = 0) -> int:
    """One number for the engine's queue, which knows no tenants: of like priorities the place says
    who goes first."""
    return (priority << _PLACE_BITS) + place


def _keep_to_budget(tap: CallTap, prompt: Any, sampling_params: Any) -> None:
    if failed := budgets.prompt_refusal(tap.call, _tokens(prompt)):
        _refuse(tap, failed)
    budgets.cut(sampling_params, tap.call)


def _tokens(prompt: Any) -> int:
    return len(prompt.get("prompt_token_ids") or ()) if isinstance(prompt, dict) else 0


def _refuse(tap: CallTap, failed: Failed) -> NoReturn:
    tap.refused = failed
    raise VLLMValidationError(failed.message, parameter=failed.param)


async def pooled(llm: TappedLLM, text: str, task: str, *, priority: int) -> int:
    """Runs one text through a model that pools; returns how many finite numbers came out. Raises
    `EngineError`."""
    numbers = 0
    parameters = PoolingParams(task=task)
    name = f"pool-{uuid4().hex}"
    try:
        async for output in llm.encode(text, parameters, name, priority=priority):
            numbers += int(output.outputs.data.isfinite().sum())
    except EngineDeadError as error:
        raise EngineError(f"the engine died: {llm.death()}") from error
    except (EngineGenerateError, ValueError) as error:
        raise EngineError(f"the model pools nothing: {error.__cause__ or error}") from error
    return numbers
