"""What can be said of each endpoint from outside: names, vLLM's models of requests and answers.

The rows beside those of `endpoints.ENDPOINTS`, for the description of the API (`openapi`). A model
may be a union. Imports vLLM: only after `environment.prepare`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from pydantic import BaseModel
from vllm.entrypoints.anthropic import protocol as anthropic
from vllm.entrypoints.openai.chat_completion import protocol as chat
from vllm.entrypoints.openai.completion import protocol as completion
from vllm.entrypoints.openai.responses import protocol as responses
from vllm.entrypoints.pooling.classify import protocol as classify
from vllm.entrypoints.pooling.embed import protocol as embed
from vllm.entrypoints.pooling.pooling import protocol as pooling
from vllm.entrypoints.pooling.scoring import protocol as scoring
from vllm.entrypoints.serve.tokenize import protocol as tokenize


class InputTokens(BaseModel):
    """How many tokens a response's input has."""

    object: Literal["response.input_tokens"]
    input_tokens: int


OPENAI: Final = "OpenAIErrorBody"
ANTHROPIC: Final = "AnthropicErrorBody"
"""Dialects of errors, as their schemas are named."""


@dataclass(frozen=True, slots=True)
class Described:
    """`aliases`: what clients may say as well. `event`: what the events of a stream hold; none: it
    does not stream. `stream_end`: how a whole stream ends."""

    summary: str
    request: Any
    answer: Any
    aliases: tuple[str, ...] = ()
    event: Any = None
    stream_end: str = ""
    errors: str = OPENAI


_DONE: Final = "`data: [DONE]`"
_COMPLETED: Final = "`response.completed`, `response.incomplete` or `response.failed`"

DESCRIBED: Final[Mapping[str, Described]] = {
    "/v1/chat/completions": Described(
        "Answer a conversation.",
        chat.ChatCompletionRequest,
        chat.ChatCompletionResponse,
        event=chat.ChatCompletionStreamResponse,
        stream_end=_DONE,
    ),
    "/v1/completions": Described(
        "Go on with a text.",
        completion.CompletionRequest,
        completion.CompletionResponse,
        event=completion.CompletionStreamResponse,
        stream_end=_DONE,
    ),
    "/v1/responses": Described(
        "Make a response. Nothing is kept: `store` is answered as false.",
        responses.ResponsesRequest,
        responses.ResponsesResponse,
        event=responses.StreamingResponsesResponse,
        stream_end=_COMPLETED,
    ),
    "/v1/responses/input_tokens": Described(
        "Count the tokens of a response's input.", responses.ResponsesRequest, InputTokens
    ),
    "/v1/messages": Described(
        "Answer a conversation, as Anthropic's API does.",
        anthropic.AnthropicMessagesRequest,
        anthropic.AnthropicMessagesResponse,
        event=anthropic.AnthropicStreamEvent,
        stream_end="`message_stop`",
        errors=ANTHROPIC,
    ),
    "/v1/messages/count_tokens": Described(
        "Count the tokens of a conversation, as Anthropic's API does.",
        anthropic.AnthropicCountTokensRequest,
        anthropic.AnthropicCountTokensResponse,
        errors=ANTHROPIC,
    ),
    "/v1/embeddings": Described(
        "Make vectors of texts.", embed.EmbeddingRequest, embed.EmbeddingResponse
    ),
    "/v1/score": Described(
        "Say how near pairs of texts are.",
        scoring.ScoreRequest,
        scoring.ScoreResponse,
        aliases=("/score",),
    ),
    "/v1/rerank": Described(
        "Order documents by how near they are to a query.",
        scoring.RerankRequest,
        scoring.RerankResponse,
        aliases=("/rerank", "/v2/rerank"),
    ),
    "/classify": Described(
        "Say to which class texts belong.",
        classify.ClassificationRequest,
        classify.ClassificationResponse,
        aliases=("/v1/classify",),
    ),
    "/pooling": Described(
        "Give what the model's pooler makes of texts.",
        pooling.PoolingCompletionRequest | pooling.PoolingChatRequest,
        pooling.PoolingResponse,
        aliases=("/v1/pooling",),
    ),
    "/tokenize": Described(
        "Turn a text or a conversation into tokens.",
        tokenize.TokenizeRequest,
        tokenize.TokenizeResponse,
        aliases=("/v1/tokenize",),
    ),
    "/detokenize": Described(
        "Turn tokens into a text.",
        tokenize.DetokenizeRequest,
        tokenize.DetokenizeResponse,
        aliases=("/v1/detokenize",),
    ),
}
