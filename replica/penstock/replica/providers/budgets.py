"""Whether a conversation fits, before it goes to a provider whose tokenizer nobody here has. Pure.

Its tokens are estimated. What is too long loses its oldest turns where the call allows it, and is
refused where the call's own budget says so; beyond the model's context the provider knows best.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from penstock.replica import prompts
from penstock.replica.providers import errors
from penstock.replica.providers.requests import CHAT, EMBEDDINGS, completion_limit
from penstock.replica.providers.values import Ask

_FIELDS: Final = {CHAT: "messages", "/v1/completions": "prompt"}
_PROMPT: Final = ("messages", "prompt", "input", "instructions", "tools")


def prompt_tokens(ask: Ask) -> int:
    """Tokens of all that a request's prompt is made of, estimated."""
    return prompts.estimate([ask.body.get(field) for field in _PROMPT])


def within_budget(ask: Ask, max_model_len: int) -> Ask:
    """The call with a prompt that fits, as far as that is known here. `max_model_len`: tokens of
    prompt and answer together; 0: not known. Raises `ProviderFailed`."""
    budget = ask.call.max_prompt_tokens
    field = _FIELDS.get(ask.call.path, "input")
    if ask.call.path == EMBEDDINGS or field not in ask.body:
        return ask
    tokens = prompts.estimate(ask.body[field])
    if ask.call.trim and isinstance(ask.body[field], list) and ask.call.path == CHAT:
        _, answer = completion_limit(ask.call, ask.body)
        context = max_model_len - (answer if answer < max_model_len else 0)
        for most in sorted(filter(None, (budget, context))):
            if tokens > most and (trimmed := _trimmed(ask, field, most)):
                return trimmed
    if budget and tokens > budget:
        raise errors.prompt_too_long(field, tokens, budget)
    return ask


def _trimmed(ask: Ask, field: str, budget: int) -> Ask | None:
    """Without its oldest turns; none: what has to stay is too much."""
    messages = ask.body[field]
    trimmed = prompts.trimmed(messages, budget)
    if trimmed is None:
        return None
    kept, fit = trimmed
    return replace(
        ask,
        body={**ask.body, field: kept},
        trimmed_messages=len(messages) - len(kept),
        trimmed_tokens=fit.whole - fit.tokens,
    )
