"""The scheduler's half, in the engine's process: a request that goes on is taken up as one that was
preempted, with its outputs so far.

What is prompt and what is output stays apart, so that penalties, limits and grammars count as they
would have. Works with whatever scheduler vLLM chooses, with steps ahead (asynchronous) or without.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any, Final

from penstock.replica.vllm import surface
from penstock.replica.vllm.resume.delivered import delivered
from penstock.replica.vllm.surface.values import Stage

_AT_ONCE: Final = 64
"""Tokens whose end of reasoning is looked for together: one after the other, the parsers of some
models would read all before each."""


def install() -> None:
    """Has vLLM make its engine with a scheduler that goes on."""
    from vllm.config.scheduler import SchedulerConfig

    choose = SchedulerConfig.get_scheduler_cls

    def chosen(config: Any) -> Any:
        surface.check(Stage.PROCESS)
        return continuing(choose(config))

    SchedulerConfig.get_scheduler_cls = chosen


@functools.cache
def continuing(scheduler: type) -> type:
    """A scheduler like this one that takes up requests after what was delivered of them."""

    class Continuing(scheduler):  # type: ignore[misc]
        def __init__(self, *args: Any, **more: Any) -> None:
            super().__init__(*args, **more)
            manager = self.structured_output_manager
            manager.grammar_init = _taken_up_first(manager.grammar_init)
            manager._create_grammar = _advanced(manager, manager._create_grammar)

        def add_request(self, request: Any) -> None:
            _take_up(request)
            super().add_request(request)

    return Continuing


def _take_up(request: Any) -> None:
    """Gives a request its outputs so far, once."""
    ids = delivered(request.sampling_params)
    if ids and not request.num_output_tokens:
        request.append_output_token_ids(list(ids))
        # They are of a prompt's first computation, and vLLM insists that no more than the prompt
        # was cached then; what the client is told of that was delivered long ago.
        request.prefill_stats = None


def _taken_up_first(init: Callable[[Any], None]) -> Callable[[Any], None]:
    """`grammar_init`, which hands the request to another thread before the scheduler gets it."""

    def taken_up(request: Any) -> None:
        _take_up(request)
        init(request)

    return taken_up


def _advanced(manager: Any, create: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """`_create_grammar`, which runs in a thread of its own: the grammar has read the outputs so
    far. Raises ValueError, which fails the request alone, where it does not allow them."""

    def advanced(request: Any) -> Any:
        grammar = create(request)
        ids = delivered(request.sampling_params)
        if ids and not _read(manager, request, grammar, ids):
            raise ValueError("its grammar does not allow what was delivered")
        return grammar

    return advanced


def _read(manager: Any, request: Any, grammar: Any, ids: Sequence[int]) -> bool:
    """Whether the grammar allows these outputs, which it has read then. Where the model reasons
    first, it begins behind that, as vLLM's manager says."""
    told = request.structured_output_request
    so_far = SimpleNamespace(
        grammar=grammar,
        reasoning_ended=told.reasoning_ended,
        reasoning_parser_kwargs=told.reasoning_parser_kwargs,
        reasoner=told.reasoner,
    )
    known = list(request.prompt_token_ids or ())
    stand_in = SimpleNamespace(
        request_id=request.request_id,
        use_structured_output=True,
        structured_output_request=so_far,
        prompt_token_ids=request.prompt_token_ids,
        all_token_ids=known,
    )
    for start in range(0, len(ids), _AT_ONCE):
        some = list(ids[start : start + _AT_ONCE])
        known += some
        if not manager.accept_tokens(stand_in, some):
            return False
    told.reasoning_ended, told.reasoner = so_far.reasoning_ended, so_far.reasoner
    return True
