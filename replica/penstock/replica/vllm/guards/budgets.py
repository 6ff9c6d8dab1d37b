"""How many tokens a call may have of its prompt and of each answer, as the gateway says.

What a request names is looked at when it has been parsed; the prompt, in the engine's own tokens,
when it goes to the engine. A request that names no limit of its answers gets the call's. Pure.
"""

from __future__ import annotations

import json
from typing import Any, Final

from penstock.replica.values import Call, Failed
from penstock.replica.vllm.failures import errors

_LIMITS: Final = ("max_completion_tokens", "max_output_tokens", "max_tokens")
"""Fields by which requests limit their answers; of two that are set vLLM takes the first."""

_PROMPTS: Final = {
    "/v1/chat/completions": "messages",
    "/v1/messages": "messages",
    "/v1/completions": "prompt",
    "/v1/responses": "input",
}
"""Where an endpoint's requests have their prompts."""


def completion_refusal(request: Any, call: Call) -> Failed | None:
    """Why the parsed request may not have the answer that it asks for."""
    most = call.max_completion_tokens
    named = next((name for name in _LIMITS if _is_set(request, name)), None)
    if not most or named is None or getattr(request, named) <= most:
        return None
    if not _named(request, named, call):
        return None
    return errors.token_budget_exceeded(
        f"{named} is {getattr(request, named)}, at most {most} tokens are allowed here; ask for "
        "fewer.",
        named,
    )


def prompt_refusal(call: Call, tokens: int) -> Failed | None:
    """Why a prompt of so many tokens may not go to the engine."""
    most = call.max_prompt_tokens
    if not most or tokens <= most:
        return None
    return errors.token_budget_exceeded(
        f"The prompt has {tokens} tokens, at most {most} are allowed here; shorten it.",
        _PROMPTS.get(call.path, ""),
    )


def cut(sampling_params: Any, call: Call) -> None:
    """Limits what vLLM made of the request. What the request names is within the limit."""
    if most := call.max_completion_tokens:
        sampling_params.max_tokens = min(sampling_params.max_tokens or most, most)


def _is_set(request: Any, name: str) -> bool:
    return name in type(request).model_fields and getattr(request, name) is not None


def _named(request: Any, name: str, call: Call) -> bool:
    """Whether the client itself set the limit. vLLM writes its default where a completion names
    none, so of one that is as large as that only the client's own body tells."""
    if getattr(request, name) != type(request).model_fields[name].default:
        return True
    try:
        return json.loads(call.body).get(name) is not None
    except (ValueError, AttributeError):  # no JSON object: not what was parsed
        return False
