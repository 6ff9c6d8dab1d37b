"""What a replica can be asked for: which of vLLM's paths and objects answers each endpoint.

A path that is not in the table is not reachable, whatever vLLM's app has behind it: loading
adapters, sleep, profiles, batches, rendering. A model serves those rows whose object vLLM has made
for it. Pure.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A row of the table.

    `path`: vLLM's own. `place`: the attribute of its app's state that holds the object that serves
    it. `methods`: those of the object that get a parsed request; none: the object itself is called.
    `several`: fields of the request each entry of which is a sequence for the engine. `id_prefix`:
    how the answer's id begins where vLLM takes all of it from the request. `numbers`: the answer
    holds all numbers that the model makes of the sequences.
    """

    path: str
    place: str
    methods: tuple[str, ...] = ()
    several: tuple[str, ...] = ()
    id_prefix: str = ""
    numbers: bool = False


_PAIRS: Final = ("queries", "documents", "items", "data_1", "data_2", "text_1", "text_2")

ENDPOINTS: Final[Mapping[str, Endpoint]] = {
    "/v1/chat/completions": Endpoint(
        "/v1/chat/completions", "openai_serving_chat", ("create_chat_completion",)
    ),
    "/v1/completions": Endpoint(
        "/v1/completions",
        "openai_serving_completion",
        ("create_completion",),
        several=("prompt", "prompt_embeds"),
    ),
    "/v1/responses": Endpoint(
        "/v1/responses", "openai_serving_responses", ("create_responses",), id_prefix="resp_"
    ),
    # Ours: see `responses.py`.
    "/v1/responses/input_tokens": Endpoint(
        "/v1/responses/input_tokens", "openai_serving_responses", ("count_input_tokens",)
    ),
    # The first makes a chat request of the message, and gives it to the second.
    "/v1/messages": Endpoint(
        "/v1/messages", "anthropic_serving_messages", ("create_messages", "create_chat_completion")
    ),
    "/v1/messages/count_tokens": Endpoint(
        "/v1/messages/count_tokens", "anthropic_serving_messages", ("count_tokens",)
    ),
    "/v1/embeddings": Endpoint(
        "/v1/embeddings", "serving_embedding", several=("input", "messages"), numbers=True
    ),
    # Under their first names vLLM warns of these two in its log.
    "/v1/score": Endpoint("/score", "serving_scores", several=_PAIRS),
    "/v1/rerank": Endpoint("/rerank", "serving_scores", several=("query", "documents")),
    "/classify": Endpoint("/classify", "serving_classification", several=("input",), numbers=True),
    "/pooling": Endpoint("/pooling", "serving_pooling", several=("input",), numbers=True),
    "/tokenize": Endpoint("/tokenize", "serving_tokenization", ("create_tokenize",)),
    "/detokenize": Endpoint("/detokenize", "serving_tokenization", ("create_detokenize",)),
}
"""All of them, by their first names, which are those that the gateway sends."""


def served(state: Any, paths: Collection[str]) -> tuple[str, ...]:
    """First names of what the model serves for which vLLM's app has this state and these paths."""
    return tuple(
        sorted(
            name
            for name, endpoint in ENDPOINTS.items()
            if endpoint.path in paths and getattr(state, endpoint.place, None) is not None
        )
    )
