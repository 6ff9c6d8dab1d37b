"""What of a request is the replica's to say: engine controls that a client may not set.

vLLM's request models carry fields by which a router steers the engine. They are overwritten on the
parsed request, just before vLLM's serving layer gets it; the body itself stays as it came. A new
vLLM may bring new fields: tests/replica/vllm/test_request_fields.py names every one that was seen.
"""

from __future__ import annotations

from typing import Any, Final

from penstock.replica.engine import Call
from penstock.replica.vllm.environment import MAX_CHOICES

ENDPOINTS: Final = {
    "/v1/chat/completions": ("openai_serving_chat", "create_chat_completion"),
    "/v1/completions": ("openai_serving_completion", "create_completion"),
}
"""What the replica answers: for each path, where vLLM keeps what serves it, and its method."""

NEUTRAL: Final[dict[str, Any]] = {
    # Where the request's KV blocks come from and go to.
    "kv_transfer_params": None,
    "ec_transfer_params": None,
    # Arguments of engine extensions.
    "vllm_xargs": None,
    # Keeps requests together on one engine of several.
    "session_id": None,
    # Routed-expert dumps, for those who train.
    "routed_experts_prompt_start": 0,
    # Says how often to wake the serving layer.
    "stream_interval": None,
    # Arguments of the processors of images and sound, run before any limit.
    "mm_processor_kwargs": None,
    "media_io_kwargs": None,
}
"""Fields that are put back to what they are when a client does not name them."""


class NotOffered(ValueError):
    """The request wants what this replica does not do; `parameter` is the field."""

    def __init__(self, message: str, parameter: str) -> None:
        super().__init__(message)
        self.parameter = parameter


def take_over(request: Any, call: Call, most_sequences: int) -> None:
    """Sets the engine controls of vLLM's parsed request as the call says. Raises `NotOffered`."""
    _refuse(request, most_sequences)
    fields = type(request).model_fields
    for name, value in NEUTRAL.items():
        if name in fields:
            setattr(request, name, value)
    request.priority = call.priority
    request.cache_salt = call.tenant_salt or None
    request.request_id = call.request_id


def _refuse(request: Any, most_sequences: int) -> None:
    if request.use_beam_search:
        raise NotOffered(
            "Beam search is not offered; leave use_beam_search out.", "use_beam_search"
        )
    if (request.n or 1) > MAX_CHOICES:
        raise NotOffered(f"n is {request.n}, at most {MAX_CHOICES} choices are possible.", "n")
    wanted = _prompts(getattr(request, "prompt", None)) * (request.n or 1)
    if wanted > most_sequences:
        raise NotOffered(
            f"The request asks for {wanted} sequences, {most_sequences} are possible at once; "
            "send fewer prompts.",
            "prompt",
        )


def _prompts(prompt: Any) -> int:
    """How many prompts a completion request has: a list of texts or of token lists has several."""
    several = isinstance(prompt, list) and prompt and not isinstance(prompt[0], int)
    return len(prompt) if several else 1


__all__ = ["ENDPOINTS", "NEUTRAL", "NotOffered", "take_over"]
