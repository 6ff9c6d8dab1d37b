"""Has conversations that are too long lose their oldest turns, where vLLM makes prompts of them.

Tokens are counted by making the prompt, by the model's own template, with the request's tools; a
conversation that fits is made a prompt of once, as without trimming. Of one that is much too long
no more is tokenized than twice the context at a time; how many tokens it had is then estimated.
Knows no vLLM.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from penstock.replica import prompts
from penstock.replica.trimming import Fit, Message, search
from penstock.replica.vllm.serving.tap import CURRENT, CallTap

Render = Callable[..., Awaitable[tuple[Any, Any]]]
"""Conversations, how templates and the tokenizer are to be used; to conversations and prompts."""

PATHS: Final = ("/v1/chat/completions", "/v1/messages", "/v1/responses")
"""Endpoints whose conversations are trimmed where the call says so."""

_TOO_LONG: Final = ("input_tokens", "input_text")
_COUNTED: Final = 2
"""How many times the model's context is counted: what is longer has its tokens estimated."""

_UNCUT: Final = {
    "max_output_tokens": 0,
    "truncate_prompt_tokens": None,
    "truncation_side": None,
    "pad_prompt_tokens": None,
}
_TEXTS: Final = ("text", "input_text", "output_text", "refusal", "thinking")


def trim_conversations(renderer: Any) -> None:
    """Has what this renderer of vLLM's makes prompts of kept within the budget of its call."""
    renderer.render_chat_async = partial(_rendered, renderer.render_chat_async)


async def _rendered(
    render: Render,
    conversations: Sequence[Any],
    chat_params: Any,
    tok_params: Any = None,
    **more: Any,
) -> tuple[Any, Any]:
    """`render`, of a conversation that is kept within the budget of its call."""
    tap = CURRENT.get()
    if tap is not None and tap.reads:  # vLLM counts on the engine to get pictures that it remembers
        more = {**more, "skip_mm_cache": True}
    if tap is None or tok_params is None or not (tap.call.trim and tap.call.path in PATHS):
        return await render(conversations, chat_params, tok_params, **more)
    (messages,) = (_listed(one) for one in conversations)
    making = _Making(render, chat_params, tok_params, more)
    budget = _budget(tap, tok_params)
    # vLLM remembers what it has made of a picture, and counts on the engine to have got it.
    whole = None if _has_media(messages) else await making.unless_too_long(messages)
    if whole is not None and _tokens(whole) <= budget:
        return whole
    known = _tokens(whole) if whole is not None and making.makes_all() else None
    fit = await _fit(messages, _read(messages, tap), budget, making, known)
    if fit is None or len(fit.kept) == len(messages):
        return whole or await making.prompt(messages)
    tap.trimmed = (len(messages) - len(fit.kept), fit.whole - fit.tokens)
    return await making.prompt([messages[place] for place in fit.kept])


@dataclass(frozen=True, slots=True)
class _Making:
    """How a prompt is made of the messages of one request."""

    render: Render
    chat_params: Any
    tok_params: Any
    more: dict[str, Any]

    async def prompt(self, messages: list[Any]) -> tuple[Any, Any]:
        """The prompt for the engine. Raises what vLLM does for one that is too long."""
        return await self.render([messages], self.chat_params, self.tok_params, **self.more)

    def makes_all(self) -> bool:
        """Whether the prompt has all of its messages, for the request does not have it cut."""
        return self.tok_params.truncate_prompt_tokens is None

    async def unless_too_long(self, messages: list[Any]) -> tuple[Any, Any] | None:
        """The prompt for the engine; none: the model's context is smaller."""
        return await _unless_too_long(self.prompt(messages))

    async def count(self, messages: list[Any]) -> int | None:
        """The tokens of a prompt which nobody gets; none: more than are counted."""
        most = _COUNTED * self.tok_params.max_total_tokens
        params = replace(self.tok_params, max_total_tokens=most, **_UNCUT)
        more = self.more | {"skip_mm_cache": True}
        made = await _unless_too_long(self.render([messages], self.chat_params, params, **more))
        return None if made is None else _tokens(made)


async def _unless_too_long(making: Awaitable[tuple[Any, Any]]) -> tuple[Any, Any] | None:
    try:
        return await making
    except Exception as error:
        if getattr(error, "parameter", None) not in _TOO_LONG:
            raise
        return None


async def _fit(
    messages: list[Any],
    read: Sequence[Message],
    budget: int,
    making: _Making,
    known: int | None,
) -> Fit | None:
    """What `search` finds; `known`: the tokens of all messages, where they were counted already."""
    asking = search(read, budget)
    places = next(asking)
    try:
        if known is not None:
            places = asking.send(known)
        while True:
            tokens = await making.count([messages[place] for place in places])
            places = asking.send(_estimated(read, places, making) if tokens is None else tokens)
    except StopIteration as found:
        fit: Fit | None = found.value
        return fit


def _estimated(read: Sequence[Message], places: Iterable[int], making: _Making) -> int:
    """The tokens of what has more than are counted, by the sizes of its messages."""
    counted: int = _COUNTED * making.tok_params.max_total_tokens
    return max(counted + 1, sum(read[place].size for place in places))


def _budget(tap: CallTap, tok_params: Any) -> int:
    """How many tokens the prompt may have: what the call says, and never more than the context
    less what the request asks for."""
    room: int = tok_params.max_total_tokens - max(1, tok_params.max_output_tokens or 0)
    return min(room, tap.call.max_prompt_tokens or room)


def _tokens(made: tuple[Any, Any]) -> int:
    _, (prompt,) = made
    return len(prompt.get("prompt_token_ids") or ())


def _read(messages: Sequence[Any], tap: CallTap) -> list[Message]:
    """What trimming has to know of the messages; those that the client has pinned are told by
    their distance from the end."""
    return [
        replace(one, pinned=one.pinned or len(messages) - place in tap.pinned)
        for place, one in enumerate(prompts.read(messages))
    ]


def _listed(messages: Iterable[Any]) -> list[Any]:
    """The messages, whose parts are made lists where they could be read but once."""
    listed = list(messages)
    for one in listed:
        content = one.get("content") if isinstance(one, dict) else None
        if content is not None and not isinstance(content, str | list):
            one["content"] = list(content)
    return listed


def _has_media(messages: Iterable[Any]) -> bool:
    contents = [one.get("content") for one in messages if isinstance(one, dict)]
    parts = [part for content in contents if isinstance(content, list) for part in content]
    return any(isinstance(part, dict) and part.get("type") not in _TEXTS for part in parts)
