"""Faults of vLLM's CPU build by which one request ends the engine for all, cured in its process.

Each cure replaces one method of vLLM's with one that does what was meant. Imported where the worker
runs on a CPU, and nowhere else: they touch model runner V1, which other platforms may not have.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch
from vllm.lora.punica_wrapper.punica_cpu import PunicaWrapperCPU
from vllm.v1.worker.gpu_input_batch import CachedRequestState
from vllm.v1.worker.gpu_model_runner import GPUModelRunner


class RewindingGenerator(torch.Generator):  # type: ignore[misc]
    """A CPU generator that can be rewound to where a step began."""

    def mark(self) -> None:
        """A step begins."""
        self._marked = self.get_state()

    def get_offset(self) -> int:
        """What one draw advances a GPU generator by: rewinding a draw then ends at 0."""
        return 4

    def set_offset(self, offset: int) -> None:
        """Takes back what this step has drawn."""
        self.set_state(self._marked)


def cure_seeds() -> None:
    """A request with a `seed` whose prompt is longer than one step's token budget.

    What it draws in a step that computes only a part of its prompt is dropped, and the runner
    rewinds the request's random generator by `set_offset`, which a CPU generator does not have.
    That also happens after its first tokens: where it is preempted and computed once more.
    """
    original = CachedRequestState.__post_init__
    sample = GPUModelRunner._sample

    def post_init(state: Any) -> None:
        if state.generator is not None and state.generator.device.type == "cpu":
            generator = RewindingGenerator()
            generator.manual_seed(state.sampling_params.seed)
            state.generator = generator
        original(state)

    def marked(runner: Any, *args: Any, **more: Any) -> Any:
        for generator in runner.input_batch.generators.values():
            generator.mark()
        return sample(runner, *args, **more)

    CachedRequestState.__post_init__ = post_init
    GPUModelRunner._sample = marked


def cure_prompt_logprobs() -> None:
    """Adapters on, several requests in a batch, and one of them wants logprobs of its prompt.

    The CPU kernel that puts adapters on logits takes one row for each request of the batch. The
    logits of a prompt are many rows of one request: all of them get that request's adapter.
    """
    with_logprobs = GPUModelRunner._get_prompt_logprobs_dict
    add_lora_logits = PunicaWrapperCPU.add_lora_logits
    prompts = _PromptRows()

    def one_by_one(runner: Any, hidden: Any, scheduled: dict[str, int]) -> dict[str, Any]:
        wanted = runner.num_prompt_logprobs
        found: dict[str, Any] = {}
        try:
            for request in [request for request in wanted if request in scheduled]:
                runner.num_prompt_logprobs = {request: wanted[request]}
                with prompts.of(runner, request):
                    found |= with_logprobs(runner, hidden, scheduled)
                if not runner.num_prompt_logprobs:  # its prompt is through
                    del wanted[request]
        finally:
            runner.num_prompt_logprobs = wanted
        return found

    def with_one_adapter(punica: Any, *args: Any, **more: Any) -> None:
        with prompts.one_adapter(punica):
            add_lora_logits(punica, *args, **more)

    GPUModelRunner._get_prompt_logprobs_dict = one_by_one
    PunicaWrapperCPU.add_lora_logits = with_one_adapter


class _PromptRows:
    """While logits of a prompt are made: where in the batch that prompt's tokens begin."""

    def __init__(self) -> None:
        self._first: int | None = None

    @contextlib.contextmanager
    def of(self, runner: Any, request: str) -> Iterator[None]:
        index = runner.input_batch.req_id_to_index[request]
        self._first = int(runner.query_start_loc.np[index])
        try:
            yield
        finally:
            self._first = None

    @contextlib.contextmanager
    def one_adapter(self, punica: Any) -> Iterator[None]:
        """The kernel sees one adapter for all rows; between prompts, those it was given."""
        if self._first is None:
            yield
            return
        indices, length = punica._sampler_indices, punica.indices_len[1]
        punica._sampler_indices = punica.token_lora_indices[self._first : self._first + 1]
        punica.indices_len[1] = 1
        try:
            yield
        finally:
            punica._sampler_indices, punica.indices_len[1] = indices, length
