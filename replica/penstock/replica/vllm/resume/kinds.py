"""Which requests can be gone on with elsewhere. Pure."""

from __future__ import annotations

from typing import Any


def is_streamed(sampling_params: Any) -> bool:
    """Whether outputs are told as they are made."""
    return bool(sampling_params.output_kind.name == "DELTA")


def can_be_resumed(path: str, prompt: Any, sampling_params: Any) -> bool:
    """Whether another replica, given the tokens, would go on with the same answer.

    Of an answer in one piece nothing is delivered before its end. Log probabilities are not made
    again: not a prompt's, and not those of tokens that were delivered, all of which the end of a
    response repeats. Of prompts that are not all text the parts between are not known by token. An
    end of thinking that is forced by a budget would begin anew where it was cut.
    """
    return (
        is_streamed(sampling_params)
        and sampling_params.thinking_token_budget is None
        and sampling_params.prompt_logprobs is None
        and (path != "/v1/responses" or sampling_params.num_logprobs is None)
        and isinstance(prompt, dict)
        and prompt.get("type") == "token"
    )
