"""What travels beside a request, and which requests can be gone on with."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from penstock.replica.vllm.resume.apart import Apart
from penstock.replica.vllm.resume.delivered import delivered, with_delivered
from penstock.replica.vllm.resume.kinds import can_be_resumed


def test_tokens_travel_beside_what_else_does() -> None:
    told = SimpleNamespace(extra_args={"kv_transfer_params": 1})
    on = with_delivered(told, [4, 5])
    assert list(delivered(on)) == [4, 5]
    assert on.extra_args["kv_transfer_params"] == 1
    assert not delivered(told)
    assert not delivered(SimpleNamespace(extra_args=None))
    assert not delivered(None)  # of a request that pools


def _can(path: str = "/v1/chat/completions", prompt: Any = None, **fields: Any) -> bool:
    kind = SimpleNamespace(name=fields.pop("output_kind", "DELTA"))
    none = ("prompt_logprobs", "num_logprobs", "thinking_token_budget")
    told = dict.fromkeys(none) | fields
    prompt = {"type": "token", "prompt_token_ids": [1]} if prompt is None else prompt
    return can_be_resumed(path, prompt, SimpleNamespace(output_kind=kind, **told))


def test_streams_of_text_can_be_gone_on_with() -> None:
    assert _can()
    assert _can(num_logprobs=3)
    assert _can("/v1/responses")


@pytest.mark.parametrize(
    "fields",
    [
        {"output_kind": "FINAL_ONLY"},
        {"prompt_logprobs": 0},
        {"thinking_token_budget": 8},
        {"path": "/v1/responses", "num_logprobs": 0},
        {"prompt": {"type": "multimodal"}},
        {"prompt": {"type": "embeds"}},
        {"prompt": "words"},
    ],
)
def test_what_cannot_be_gone_on_with_is_told(fields: dict[str, Any]) -> None:
    assert not _can(**fields)


def test_events_that_the_client_has_are_swallowed_and_then_no_more() -> None:
    apart = Apart(2)
    assert [apart.keeps(b"x") for _ in range(3)] == [True, True, False]
    assert apart.taken() == (b"", 0)


def test_what_one_output_became_is_kept_in_one_piece() -> None:
    apart = Apart(1)
    apart.gathers = True
    assert all(apart.keeps(event) for event in (b"had", b"role", b"word"))
    apart.gathers = False
    assert not apart.keeps(b"usage")
    assert apart.taken() == (b"roleword", 2)
    assert apart.taken() == (b"", 0)
