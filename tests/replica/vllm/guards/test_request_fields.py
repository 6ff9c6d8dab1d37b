"""Every field of vLLM's request models was looked at: is it the client's to set?

Fails when a new vLLM brings fields. Then read what each does: a field that steers the engine goes
into `controls.NEUTRAL`, any other into the list here.
"""

from __future__ import annotations

from typing import Annotated, Any, get_args, get_origin

import pytest
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from penstock.replica.vllm.endpoints import ENDPOINTS
from penstock.replica.vllm.guards.controls import NEUTRAL, REFUSED

pytestmark = [
    pytest.mark.vllm,
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning"),
]

_FROM_THE_CALL = {"priority", "cache_salt", "request_id"}
# One conversation, or the tokens of one text.
_NOT_SEQUENCES = {"messages", "tokens", "input"}
_CLIENTS = {
    "add_generation_prompt",
    "add_special_tokens",
    "allowed_token_ids",
    "bad_words",
    "chat_template",
    "chat_template_kwargs",
    "continue_final_message",
    "data",
    "data_1",
    "data_2",
    "dimensions",
    "documents",
    "echo",
    "embed_dtype",
    "enable_response_messages",
    "encoding_format",
    "endianness",
    "frequency_penalty",
    "ignore_eos",
    "include",
    "include_reasoning",
    "include_stop_str_in_output",
    "input",
    "instruction",
    "instructions",
    "items",
    "length_penalty",
    "logit_bias",
    "logprob_token_ids",
    "logprobs",
    "max_completion_tokens",
    "max_output_tokens",
    "max_tokens",
    "max_tokens_per_doc",
    "max_tokens_per_query",
    "max_tool_calls",
    "messages",
    "metadata",
    "min_p",
    "min_tokens",
    "mm_payload",
    "model",
    "n",
    "output_config",
    "padding",
    "parallel_tool_calls",
    "presence_penalty",
    "previous_input_messages",
    "prompt",
    "prompt_cache_key",
    "prompt_embeds",
    "prompt_logprobs",
    "queries",
    "query",
    "reasoning",
    "reasoning_effort",
    "repetition_detection",
    "repetition_penalty",
    "response_format",
    "return_mm_kwargs",
    "return_prompt_text",
    "return_token_ids",
    "return_token_offsets",
    "return_token_strs",
    "return_tokens_as_token_ids",
    "seed",
    "service_tier",
    "skip_special_tokens",
    "spaces_between_special_tokens",
    "stop",
    "stop_sequences",
    "stop_token_ids",
    "stream",
    "stream_options",
    "structured_outputs",
    "suffix",
    "system",
    "task",
    "temperature",
    "text",
    "text_1",
    "text_2",
    "thinking",
    "thinking_token_budget",
    "tokens",
    "tool_choice",
    "tools",
    "top_k",
    "top_logprobs",
    "top_n",
    "top_p",
    "truncate_prompt_tokens",
    "truncation",
    "truncation_side",
    "use_activation",
    "user",
    "watermarking",
}


def _models() -> dict[str, list[type[BaseModel]]]:
    """The request models of each endpoint that a replica serves, by first names."""
    from vllm.entrypoints.anthropic import protocol as anthropic
    from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionRequest
    from vllm.entrypoints.openai.completion.protocol import CompletionRequest
    from vllm.entrypoints.openai.responses.protocol import ResponsesRequest
    from vllm.entrypoints.pooling.classify.protocol import ClassificationRequest
    from vllm.entrypoints.pooling.embed.protocol import EmbeddingRequest
    from vllm.entrypoints.pooling.pooling.protocol import PoolingRequest
    from vllm.entrypoints.pooling.scoring.protocol import RerankRequest, ScoreRequest
    from vllm.entrypoints.serve.tokenize.protocol import DetokenizeRequest, TokenizeRequest

    requests = {
        "/v1/chat/completions": ChatCompletionRequest,
        "/v1/completions": CompletionRequest,
        "/v1/responses": ResponsesRequest,
        "/v1/responses/input_tokens": ResponsesRequest,
        "/v1/messages": anthropic.AnthropicMessagesRequest,
        "/v1/messages/count_tokens": anthropic.AnthropicCountTokensRequest,
        "/v1/embeddings": EmbeddingRequest,
        "/v1/score": ScoreRequest,
        "/v1/rerank": RerankRequest,
        "/classify": ClassificationRequest,
        "/pooling": PoolingRequest,
        "/tokenize": TokenizeRequest,
        "/detokenize": DetokenizeRequest,
    }
    return {name: _alternatives(request) for name, request in requests.items()}


def _alternatives(request: Any) -> list[type[BaseModel]]:
    """The models of a union, annotated or not."""
    if isinstance(request, type) and issubclass(request, BaseModel):
        return [request]
    if get_origin(request) is Annotated:
        return _alternatives(get_args(request)[0])
    return [model for one in get_args(request) for model in _alternatives(one)]


def test_the_models_of_every_endpoint_are_looked_at() -> None:
    assert _models().keys() == ENDPOINTS.keys()


@pytest.mark.parametrize("endpoint", ENDPOINTS)
def test_no_field_is_unknown(endpoint: str) -> None:
    theirs = {name for model in _models()[endpoint] for name in model.model_fields}
    assert theirs - _FROM_THE_CALL - REFUSED.keys() - NEUTRAL.keys() - _CLIENTS == set()


def test_no_field_that_is_judged_has_gone() -> None:
    theirs = {
        name for models in _models().values() for model in models for name in model.model_fields
    }
    judged = _FROM_THE_CALL | REFUSED.keys() | NEUTRAL.keys() | _CLIENTS
    # The API's own, which vLLM does not have yet.
    assert judged - theirs == {"conversation"}


@pytest.mark.parametrize("endpoint", ENDPOINTS)
def test_fields_that_hold_sequences_are_the_models_own(endpoint: str) -> None:
    theirs = {name for model in _models()[endpoint] for name in model.model_fields}
    assert set(ENDPOINTS[endpoint].several) <= theirs


@pytest.mark.parametrize("endpoint", ENDPOINTS)
def test_no_field_may_hold_sequences_and_not_be_counted(endpoint: str) -> None:
    models = _models()[endpoint]
    lists = {name for m in models for name, f in m.model_fields.items() if _is_several(f)}
    assert lists <= set(ENDPOINTS[endpoint].several) | _NOT_SEQUENCES


def _is_several(field: FieldInfo) -> bool:
    """Whether a field is one that must be given and may be a list, as inputs are."""
    return field.is_required() and "list" in str(field.annotation)
