"""Every field of vLLM's request models was looked at: is it the client's to set?

Fails when a new vLLM brings fields. Then read what each does: a field that steers the engine goes
into `controls.NEUTRAL`, any other into the list here.
"""

from __future__ import annotations

import pytest

from penstock.replica.vllm.controls import NEUTRAL

pytestmark = [
    pytest.mark.vllm,
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning"),
]

_FROM_THE_CALL = {"priority", "cache_salt", "request_id"}
_REFUSED = {"use_beam_search"}
_CLIENTS = {
    "add_generation_prompt",
    "add_special_tokens",
    "allowed_token_ids",
    "bad_words",
    "chat_template",
    "chat_template_kwargs",
    "continue_final_message",
    "documents",
    "echo",
    "frequency_penalty",
    "ignore_eos",
    "include_reasoning",
    "include_stop_str_in_output",
    "length_penalty",
    "logit_bias",
    "logprob_token_ids",
    "logprobs",
    "max_completion_tokens",
    "max_tokens",
    "messages",
    "min_p",
    "min_tokens",
    "mm_payload",
    "model",
    "n",
    "parallel_tool_calls",
    "presence_penalty",
    "prompt",
    "prompt_embeds",
    "prompt_logprobs",
    "reasoning_effort",
    "repetition_detection",
    "repetition_penalty",
    "response_format",
    "return_mm_kwargs",
    "return_prompt_text",
    "return_token_ids",
    "return_token_offsets",
    "return_tokens_as_token_ids",
    "seed",
    "skip_special_tokens",
    "spaces_between_special_tokens",
    "stop",
    "stop_token_ids",
    "stream",
    "stream_options",
    "structured_outputs",
    "suffix",
    "temperature",
    "thinking_token_budget",
    "tool_choice",
    "tools",
    "top_k",
    "top_logprobs",
    "top_p",
    "truncate_prompt_tokens",
    "truncation_side",
    "user",
    "watermarking",
}


def test_no_field_is_unknown() -> None:
    from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionRequest
    from vllm.entrypoints.openai.completion.protocol import CompletionRequest

    theirs = set(ChatCompletionRequest.model_fields) | set(CompletionRequest.model_fields)
    assert theirs - _FROM_THE_CALL - _REFUSED - NEUTRAL.keys() - _CLIENTS == set()


def test_no_field_that_is_set_here_has_gone() -> None:
    from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionRequest

    ours = _FROM_THE_CALL | _REFUSED | NEUTRAL.keys()
    assert ours - set(ChatCompletionRequest.model_fields) == set()
