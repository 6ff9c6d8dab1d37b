"""Loaded into the process in which vLLM's worker runs, by --worker-extension-cls.

Cures a fault of vLLM's CPU build: a request with a `seed` whose prompt is longer than one step's
token budget ends the engine, because the runner rewinds the request's random generator by
`set_offset`, which a CPU generator does not have. Only what comes before the first kept token is
rewound, so rewinding means starting over from the seed.

Touch point: `CachedRequestState.__post_init__` of model runner V1; does nothing to GPU generators.
"""

from __future__ import annotations

from typing import Any

import torch
from vllm.v1.worker.gpu_input_batch import CachedRequestState

from penstock.replica.vllm import engine_process


class RewindingGenerator(torch.Generator):  # type: ignore[misc]
    """A CPU generator that can be rewound to its seed."""

    def get_offset(self) -> int:
        """Always what one draw advances a GPU generator by: rewinding then ends at 0."""
        return 4

    def set_offset(self, offset: int) -> None:
        """Back to the seed."""
        self.manual_seed(self.initial_seed())


class Extension:
    """Mixed into vLLM's worker; importing this module is what counts."""


def _install() -> None:
    original = CachedRequestState.__post_init__

    def post_init(state: Any) -> None:
        if state.generator is not None and state.generator.device.type == "cpu":
            generator = RewindingGenerator()
            generator.manual_seed(state.sampling_params.seed)
            state.generator = generator
        original(state)

    CachedRequestState.__post_init__ = post_init


engine_process.die_with_parent()
_install()

__all__ = ["Extension", "RewindingGenerator"]
