"""Conversations on their way to a prompt, with a renderer shaped like vLLM's."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from penstock.replica.values import Call
from penstock.replica.vllm.serving.tap import CURRENT, CallTap
from penstock.replica.vllm.serving.trims import trim_conversations

CHAT = "/v1/chat/completions"


class _TooLong(Exception):
    """As vLLM's `VLLMValidationError`."""

    def __init__(self, parameter: str) -> None:
        super().__init__("too long")
        self.parameter = parameter


@dataclass(frozen=True)
class _Params:
    """As vLLM's `TokenizeParams`."""

    max_total_tokens: int = 100
    max_output_tokens: int = 0
    truncate_prompt_tokens: int | None = None
    truncation_side: str | None = None
    pad_prompt_tokens: int | None = None


@dataclass
class _Renderer:
    """A token for each word, and for the assistant's turn at the end."""

    rendered: list[tuple[list[Any], bool]] = field(default_factory=list)
    limits: list[int] = field(default_factory=list)

    async def render_chat_async(
        self,
        conversations: Sequence[list[Any]],
        chat_params: Any,
        tok_params: _Params,
        *,
        prompt_extras: Any = None,
        skip_mm_cache: bool = False,
    ) -> tuple[Any, Any]:
        assert (chat_params, prompt_extras) == ("template", {"cache_salt": "s"})
        (messages,) = conversations
        self.rendered.append((messages, skip_mm_cache))
        self.limits.append(tok_params.max_total_tokens)
        tokens = 1 + sum(len(_text(one).split()) for one in messages)
        tokens = min(tokens, tok_params.truncate_prompt_tokens or tokens)
        if tokens > tok_params.max_total_tokens:
            raise _TooLong("input_tokens")
        return [messages], [{"prompt_token_ids": [0] * tokens}]


def _text(message: dict[str, Any]) -> str:
    content = message["content"]
    return content if isinstance(content, str) else " ".join(part["text"] for part in content)


def _user(words: int, **more: Any) -> dict[str, Any]:
    return {"role": "user", "content": "word " * words, **more}


@contextmanager
def _call(path: str = CHAT, **more: Any) -> Iterator[CallTap]:
    tap = CallTap(Call("r", path, b"", "m", **more))
    token = CURRENT.set(tap)
    try:
        yield tap
    finally:
        CURRENT.reset(token)


async def _prompt(renderer: _Renderer, messages: list[Any], params: _Params | None = None) -> int:
    """The tokens of the prompt that is made for the engine."""
    _, (prompt,) = await renderer.render_chat_async(
        [messages], "template", params or _Params(), prompt_extras={"cache_salt": "s"}
    )
    return len(prompt["prompt_token_ids"])


@pytest.fixture
def renderer() -> _Renderer:
    renderer = _Renderer()
    trim_conversations(renderer)
    return renderer


async def test_a_conversation_that_fits_is_made_a_prompt_of_once(renderer: _Renderer) -> None:
    messages = [_user(10), _user(10)]
    with _call(trim=True) as tap:
        assert await _prompt(renderer, messages) == 21
        assert tap.head(200, "x").trimmed_messages == 0
    assert renderer.rendered == [(messages, False)]


async def test_one_beyond_the_context_loses_its_oldest_turns_and_says_how_much(
    renderer: _Renderer,
) -> None:
    messages = [{"role": "system", "content": "be brief"}, *(_user(30) for _ in range(5))]
    with _call(trim=True) as tap:
        assert await _prompt(renderer, messages) == 93
        head = tap.head(200, "x")
        assert (head.trimmed_messages, head.trimmed_tokens) == (2, 60)
    assert renderer.rendered[-1] == ([messages[0], *messages[3:]], False)


async def test_what_the_request_asks_for_is_kept_free(renderer: _Renderer) -> None:
    messages = [_user(30) for _ in range(3)]
    with _call(trim=True):
        assert await _prompt(renderer, messages, _Params(max_output_tokens=9)) == 91
        assert await _prompt(renderer, messages, _Params(max_output_tokens=10)) == 61


async def test_the_calls_own_limit_counts_where_it_is_lower(renderer: _Renderer) -> None:
    messages = [_user(10) for _ in range(5)]
    for most, tokens in ((51, 51), (50, 41), (11, 11), (1000, 51)):
        with _call(trim=True, max_prompt_tokens=most):
            assert await _prompt(renderer, messages) == tokens


async def test_pinned_messages_stay(renderer: _Renderer) -> None:
    messages = [_user(30) for _ in range(5)]
    with _call(trim=True) as tap:
        tap.pinned = frozenset({5})
        await _prompt(renderer, messages)
    assert renderer.rendered[-1][0] == [messages[0], *messages[3:]]


async def test_what_has_to_stay_and_is_too_much_goes_as_it_came(renderer: _Renderer) -> None:
    messages = [_user(5), _user(200)]
    with _call(trim=True), pytest.raises(_TooLong):
        await _prompt(renderer, messages)
    assert renderer.rendered[-1] == (messages, False)
    with _call(trim=True, max_prompt_tokens=3) as tap:
        assert await _prompt(renderer, [_user(5), _user(5)]) == 11
        assert tap.trimmed == (0, 0)


async def test_of_one_that_is_much_too_long_no_more_is_tokenized_than_twice_the_context(
    renderer: _Renderer,
) -> None:
    messages = [_user(5000), *(_user(30) for _ in range(4))]
    with _call(trim=True) as tap:
        assert await _prompt(renderer, messages) == 91
        assert tap.trimmed[0] == 2
        assert tap.trimmed[1] > 5000
    assert max(renderer.limits) == 200


async def test_nobody_elses_prompt_is_touched(renderer: _Renderer) -> None:
    messages = [_user(60), _user(60)]
    for path, more in ((CHAT, {}), ("/v1/messages/count_tokens", {"trim": True})):
        with _call(path, **more), pytest.raises(_TooLong):
            await _prompt(renderer, messages)
    with pytest.raises(_TooLong):
        await _prompt(renderer, messages)
    assert renderer.rendered == [(messages, False)] * 3


async def test_one_that_the_request_itself_has_cut_is_cut_where_that_is_enough(
    renderer: _Renderer,
) -> None:
    messages = [_user(30) for _ in range(3)]
    with _call(trim=True, max_prompt_tokens=50) as tap:
        assert await _prompt(renderer, messages, _Params(truncate_prompt_tokens=20)) == 20
        assert tap.trimmed == (0, 0)
        assert await _prompt(renderer, messages, _Params(truncate_prompt_tokens=60)) == 31
        assert tap.trimmed == (2, 60)


async def test_another_error_is_told_at_once(renderer: _Renderer) -> None:
    with _call(trim=True), pytest.raises(TypeError):
        await _prompt(renderer, [{"role": "user", "content": [{"type": "text", "text": 7}]}])
    assert len(renderer.rendered) == 1


async def test_pictures_are_counted_without_being_remembered_for_the_engine(
    renderer: _Renderer,
) -> None:
    picture = [{"type": "image_url", "text": "word " * 60}]
    messages = [_user(60), {"role": "user", "content": picture}]
    with _call(trim=True):
        assert await _prompt(renderer, messages) == 61
    assert [remembered for _, remembered in renderer.rendered] == [True, True, False]


async def test_parts_that_can_be_read_but_once_are_counted_all_the_same(
    renderer: _Renderer,
) -> None:
    parts = [{"type": "text", "text": "word " * 60}]
    messages = [_user(60), {"role": "user", "content": iter(parts)}]
    with _call(trim=True):
        assert await _prompt(renderer, messages) == 61
    assert renderer.rendered[-1][0] == [{"role": "user", "content": parts}]
