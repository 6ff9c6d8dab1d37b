"""Model runner V1 begins behind outputs that it has not made."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

pytestmark = [
    pytest.mark.vllm,
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning"),
]

_State = Callable[..., Any]


@pytest.fixture
def state(monkeypatch: pytest.MonkeyPatch) -> _State:
    """A request as the runner keeps it, with the cures of a CPU."""
    pytest.importorskip("vllm")
    import torch
    from vllm import SamplingParams
    from vllm.v1.worker.gpu_input_batch import CachedRequestState
    from vllm.v1.worker.gpu_model_runner import GPUModelRunner

    from penstock.replica.vllm.resume import drawing
    from penstock.replica.vllm.start.cpu_cures import cure_seeds

    # What they replace is put back behind the test.
    monkeypatch.setattr(CachedRequestState, "__post_init__", CachedRequestState.__post_init__)
    monkeypatch.setattr(GPUModelRunner, "_sample", GPUModelRunner._sample)
    cure_seeds()
    drawing.install()

    def made(ids: list[int] | None, seed: int | None = 7) -> Any:
        extra = None if ids is None else {"penstock_delivered": ids}
        return CachedRequestState(
            req_id="r",
            prompt_token_ids=[1, 2, 3],
            mm_features=[],
            sampling_params=SamplingParams(seed=seed, extra_args=extra),
            generator=None if seed is None else torch.Generator().manual_seed(seed),
            block_ids=([],),
            num_computed_tokens=0,
            output_token_ids=[],
        )

    return made


def _drawn(generator: Any, count: int) -> list[int]:
    import torch

    draw = [torch.randint(0, 2**31, (1,), generator=generator) for _ in range(count)]
    return [int(one) for one in draw]


@pytest.mark.parametrize("count", [1, 2, 17, 700])
def test_a_seed_draws_what_it_would_have_drawn_next(state: _State, count: int) -> None:
    whole = _drawn(state(None).generator, count + 5)
    on = state(list(range(count)))
    assert _drawn(on.generator, 5) == whole[count:]
    assert on.output_token_ids == list(range(count))
    assert (on.num_prompt_tokens, on.num_tokens) == (3, 3 + count)


def test_what_is_taken_back_is_drawn_once_more(state: _State) -> None:
    """As where a long prompt, or one that was preempted, takes several steps."""
    whole = _drawn(state(None).generator, 6)
    generator = state([8, 9]).generator
    for _ in range(3):
        generator.mark()
        _drawn(generator, 1)
        generator.set_offset(generator.get_offset() - 4)
    assert _drawn(generator, 4) == whole[2:]


def test_a_request_that_begins_has_made_nothing(state: _State) -> None:
    begun = state(None, seed=None)
    assert (begun.output_token_ids, begun.generator) == ([], None)
    assert state([4], seed=None).output_token_ids == [4]
