"""The worker's half, for vLLM's model runner V1: it knows outputs that it has not made, and draws
for a request with a seed what would have been drawn next.

Runner V2 reads both off what the scheduler tells it: prompt and outputs apart, and noise by seed
and position.
"""

from __future__ import annotations

from typing import Any, Final

import torch
from vllm.v1.worker.gpu_input_batch import CachedRequestState

from penstock.replica.vllm.resume.delivered import delivered

_OFFSET: Final = 4
"""By how much one draw advances a device's generator, as vLLM's runner takes it back."""


def install() -> None:
    """Has the runner begin requests after what was delivered of them. After the CPU's cures, which
    give requests generators of their own."""
    original = CachedRequestState.__post_init__

    def post_init(state: Any) -> None:
        original(state)
        ids = delivered(state.sampling_params)
        if ids and not state.output_token_ids:
            state.output_token_ids = list(ids)
            if state.generator is not None:
                advance(state.generator, len(ids))

    CachedRequestState.__post_init__ = post_init


def advance(generator: Any, draws: int) -> None:
    """As if so many tokens had been drawn: one number of 31 bits each on a CPU."""
    if generator.device.type == "cpu":
        torch.randint(0, 2**31, (draws,), generator=generator, dtype=torch.long)
    else:
        generator.set_offset(generator.get_offset() + _OFFSET * draws)
