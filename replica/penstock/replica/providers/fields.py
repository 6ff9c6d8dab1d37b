"""Which fields of a request a provider gets: lists, so that nothing goes unthought of. Pure.

A field is passed on or translated; or it is harmless, and left out; or its value says nothing;
anything else is refused by name, so that a ladder goes on to who can answer what was asked.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final

from penstock.replica.providers import errors

FEATURES: Final[Mapping[str, str]] = {
    "hosted_tools": "tools that the provider runs itself",
    "model_fields": "additionalModelRequestFields",
    "store": "answers that the provider keeps",
    "stored_objects": "what the account keeps at the provider, by its id",
    "thinking": "a budget of thoughts",
    "web_search": "searches of the web",
}
"""What costs or reaches more than the model: passed on where `provider_features` names it."""

NEEDS: Final[Mapping[str, str]] = {
    "additionalModelRequestFields": "model_fields",
    "thinking": "thinking",
    "web_search_options": "web_search",
}
"""Fields that are passed on with a feature alone."""

_HARMLESS: Final = frozenset(
    {
        *(
            "model",
            "priority",
            "cache_salt",
            "penstock",
            "request_id",
            "session_id",
            "stream_interval",
        ),
        *("kv_transfer_params", "ec_transfer_params", "stream_options", "metadata", "user"),
        *("prompt_cache_key", "prompt_cache_retention", "safety_identifier", "seed", "store"),
        "ignore_eos",  # for measurements: an answer that ends by itself is what a provider has
    }
)
"""They are for Penstock or for who keeps things, or promise nothing: no answer is another one for
their being left out."""

_NEUTRAL: Final[Mapping[str, tuple[object, ...]]] = {
    "add_generation_prompt": (True,),
    "background": (False,),
    "best_of": (1,),
    "continue_final_message": (False,),
    "echo": (False,),
    "frequency_penalty": (0,),
    "function_call": ("none", "auto"),
    "include_reasoning": (True,),
    "include_stop_str_in_output": (False,),
    "length_penalty": (1,),
    "logprobs": (False,),
    "min_p": (0,),
    "min_tokens": (0,),
    "modalities": (["text"],),
    "n": (1,),
    "parallel_tool_calls": (True,),
    "presence_penalty": (0,),
    "repetition_penalty": (1,),
    "return_token_ids": (False,),
    "return_tokens_as_token_ids": (False,),
    "skip_special_tokens": (True,),
    "spaces_between_special_tokens": (True,),
    "top_k": (-1, 0),
    "top_logprobs": (0,),
    "truncation": ("disabled",),
    "use_beam_search": (False,),
    "verbosity": ("medium",),
}
"""Values that say nothing, beside null and what is empty."""

_WHY: Final[Mapping[str, str]] = {
    field: "answers are not kept; send the whole conversation"
    for field in ("background", "conversation", "previous_response_id")
}


def passed(
    body: Mapping[str, Any], known: Collection[str], features: Collection[str]
) -> dict[str, Any]:
    """The fields of the body that are `known`, or that a feature allows. Raises `ProviderFailed`
    for the first other one that says something."""
    kept: dict[str, Any] = {}
    for field, value in body.items():
        need = NEEDS.get(field)
        if (field in known and (need is None or need in features)) or f"field:{field}" in features:
            kept[field] = value
        elif field not in _HARMLESS and not _says_nothing(body, field, value):
            why = f"it needs the feature {need}" if field in known else _WHY.get(field, "")
            raise errors.unsupported(field, why)
    return kept


def _says_nothing(body: Mapping[str, Any], field: str, value: object) -> bool:
    if value is None or value in ([], {}, ""):
        return True
    if field == "parallel_tool_calls" and not body.get("tools"):
        return True
    return value in _NEUTRAL.get(field, ())
