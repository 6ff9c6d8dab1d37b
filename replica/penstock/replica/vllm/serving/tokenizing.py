"""vLLM's tokenizer, whose threads all calls share: tenants take turns, a piece at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from itertools import takewhile
from typing import Any

from penstock.replica.vllm.fairness.pieces import PIECE, Pieces, Tokens
from penstock.replica.vllm.fairness.turns import Turns
from penstock.replica.vllm.serving.asgi import App, Message
from penstock.replica.vllm.serving.tap import CURRENT, owner

Tokenize = Callable[[Any, Any], Awaitable[Any]]


def tokenize_in_turns(renderer: Any) -> Turns:
    """Lets tenants, and the calls of each, take turns at the threads that tokenize; a long text
    takes many."""
    swappable = renderer._executor
    turns = Turns(swappable._inner, owner, swappable._max_workers)
    swappable._inner = turns
    if renderer._can_produce_offsets():
        renderer._tokenize_prompt_async = _in_pieces(renderer, renderer._tokenize_prompt_async)
    return turns


def _in_pieces(renderer: Any, at_once: Tokenize) -> Tokenize:
    """`at_once`, of a text of any length."""

    async def tokenized(prompt: Any, params: Any) -> Any:
        text = prompt["prompt"]
        if len(text) <= PIECE or params.return_token_offsets:
            return await at_once(prompt, params)
        wanted = params.get_encode_kwargs()
        tokenizer = renderer.get_tokenizer()
        encode = partial(_encoded, tokenizer, special=wanted["add_special_tokens"])
        most = wanted["max_length"] if wanted["truncation"] else None
        cut = params.truncate_prompt_tokens is not None
        left = cut and tokenizer.truncation_side == "left"
        pieces = Pieces(text, encode, None if left else most)
        loop = asyncio.get_running_loop()
        while not pieces.done:
            await loop.run_in_executor(renderer._executor, pieces.step)
        kept = _kept(pieces.tokens(), most, left=left)
        return renderer._build_tokens_prompt(kept, prompt)

    return tokenized


def _encoded(tokenizer: Any, text: str, *, special: bool) -> Tokens:
    """A piece's tokens. On the tokenizer's thread."""
    made = tokenizer(
        text,
        add_special_tokens=special,
        truncation=False,
        return_offsets_mapping=True,
        return_special_tokens_mask=True,
        return_attention_mask=False,
        return_token_type_ids=False,
        verbose=False,
    )
    ids, mask = made["input_ids"], made["special_tokens_mask"]
    before = len(list(takewhile(bool, mask)))
    behind = len(list(takewhile(bool, mask[:before:-1]))) if before < len(mask) else 0
    body = slice(before, len(ids) - behind)
    return Tokens(
        ids[body], made["offset_mapping"][body], tuple(ids[:before]), tuple(ids[body.stop :])
    )


def _kept(made: Tokens, most: int | None, *, left: bool) -> list[int]:
    """The tokens with those around them, cut to so many as transformers does."""
    ids = made.ids
    if most is not None:
        room = max(0, most - len(made.before) - len(made.behind))
        ids = ids[max(0, len(ids) - room) :] if left else ids[:room]
    return [*made.before, *ids, *made.behind]


class Forgetting:
    """The app, leaving nothing of a call with those threads when it has answered it."""

    def __init__(self, app: App, turns: tuple[Turns, ...]) -> None:
        self._app = app
        self._turns = turns

    async def __call__(self, scope: Message, receive: Any, send: Any) -> None:
        try:
            await self._app(scope, receive, send)
        finally:
            if (tap := CURRENT.get()) is not None:
                for turns in self._turns:
                    turns.forget(tap)
