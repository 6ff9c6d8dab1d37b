"""How much text one request may bring to the tokenizer, whose threads everybody shares.

vLLM bounds a text by the longest token that its tokenizer knows, which for long contexts is more
than a body may hold, and not at all where the text is to be cut. Lengths are those of the body, for
vLLM's request holds lists that can be read once. Pure.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from penstock.replica.vllm.guards.costs import NotOffered

MAX_TEXT: Final = 1_000_000
"""Characters of one text, or of one conversation with its tools; 1.5 s at the tokenizer."""

MAX_TEXT_PER_TOKEN: Final = 16
"""The same by each token of the model's context, where that is more."""

MAX_CUT: Final = 200_000
"""Characters of one text that is to be cut to a number of tokens, and of all texts where each side
of a pair is. The tokenizer makes a piece of all that is cut off: pieces of one token take four
times as long and some kilobytes each."""

MAX_CUT_PER_TOKEN: Final = 8
"""The same by each token that is kept, where that is more."""

MAX_PAIRED: Final = 4_000_000
"""Characters of all pairs to score: vLLM reads a query once more for each document."""

_SIDES: Final = (
    ("query", "queries", "data_1", "text_1"),
    ("documents", "items", "data_2", "text_2"),
)
_SIDE_CUTS: Final = ("max_tokens_per_query", "max_tokens_per_doc")
_ALONGSIDE: Final = (
    *("prompt", "suffix", "input", "messages", "instructions", "instruction", "system", "tools"),
    *("documents", "chat_template", "chat_template_kwargs", "previous_input_messages"),
)
"""Fields that end up in a text, besides those that hold several."""

_NO_TEXT: Final = {"prompt_embeds"}

_MEDIA: Final = ("url", "image_url", "audio_url", "video_url", "data", "file_data")
"""Parts of a message that are no text."""

_HOLD_MEDIA: Final = ("messages", "input", "previous_input_messages")


def check(request: Any, body: bytes, several: Sequence[str], context: int) -> None:
    """Looks at vLLM's parsed request, made of `body`, whose fields `several` hold one text in each
    entry; the model reads `context` tokens. Raises `NotOffered`."""
    cut, kept = _cut(request, context)
    most = max(MAX_TEXT, MAX_TEXT_PER_TOKEN * context)
    if cut:
        most = min(most, max(MAX_CUT, MAX_CUT_PER_TOKEN * kept))
    pairs = any(name in several for name in _SIDES[1])
    # No text has more characters than the body has bytes.
    if not pairs and len(body) <= most:
        return
    fields = json.loads(body)
    alone = {
        name: _sizes(name, fields[name], most)
        for name in several
        if name in fields.keys() - _NO_TEXT
    }
    field, size = _longest(fields, alone, most, pairs=pairs)
    if size > most:
        raise _too_long(cut or field, most, cut=bool(cut))
    if pairs:
        _check_pairs(request, alone)


def entries(name: str, value: Any) -> list[Any]:
    """The sequences in a field: a text, a list of tokens, a conversation are one."""
    if not isinstance(value, list) or not value:
        return [value]
    one_token_list = isinstance(value[0], int)
    one_conversation = isinstance(value[0], dict) and name in ("input", "messages")
    return [value] if one_token_list or one_conversation else value


def text_size(value: Any, enough: int, *, media: bool = False) -> int:
    """Characters of all texts in a value of any depth, with the names in it; what is no text, or an
    empty one, counts as one. Counting stops once it is past `enough`. `media`: the value may hold
    pictures and sound, which do not count."""
    size, left = 0, [value]
    while left and size <= enough:
        one = left.pop()
        size += max(len(one), 1) if isinstance(one, str) else 1
        if isinstance(one, dict):
            size += sum(map(len, one))
            left += [part for name, part in one.items() if not (media and name in _MEDIA)]
        elif isinstance(one, list):
            left += one
    return size


def own(request: Any, name: str) -> Any:
    """The value of a field of the model's own; None where it has none, whatever the client sent."""
    return getattr(request, name) if name in type(request).model_fields else None


def _cut(request: Any, context: int) -> tuple[str, int]:
    """The field by which a text is to be cut, and the tokens that are kept; none: no field."""
    wanted = own(request, "truncate_prompt_tokens")
    if own(request, "truncation") == "auto":
        return "truncation", context
    if wanted is None:
        return "", 0
    return "truncate_prompt_tokens", context if wanted < 0 else min(wanted, context)


def _sizes(name: str, value: Any, most: int) -> list[int]:
    """The size of each text in a field; tokens are none."""
    return [
        0 if _is_tokens(one) else text_size(one, most, media=True) for one in entries(name, value)
    ]


def _is_tokens(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], int)


def _longest(
    fields: Mapping[str, Any], alone: Mapping[str, list[int]], most: int, *, pairs: bool
) -> tuple[str, int]:
    """The size of the longest text that the tokenizer gets at once, and the field most of it is
    in."""
    longest = {name: max(sizes) for name, sizes in alone.items()}
    beside = {
        name: text_size(fields[name], most, media=name in _HOLD_MEDIA)
        for name in _ALONGSIDE
        if name in fields and name not in alone
    }
    sizes = longest | beside
    one = sum(longest.values()) if pairs else max(longest.values(), default=0)
    return max(sizes, key=lambda name: sizes[name], default=""), one + sum(beside.values())


def _check_pairs(request: Any, alone: Mapping[str, list[int]]) -> None:
    first, second = ([size for name in side for size in alone.get(name, ())] for side in _SIDES)
    total = sum(second) + (first[0] * len(second) if len(first) == 1 else sum(first))
    cut = next((name for name in _SIDE_CUTS if own(request, name)), "")
    most = MAX_CUT if cut else MAX_PAIRED
    if total > most:
        raise NotOffered(
            f"{f'With {cut} all' if cut else 'All'} pairs together may have {most} characters, a "
            f"query counted with each of its documents; these have {total}. Send fewer or shorter "
            f"texts at once{f', or leave {cut} out' if cut else ''}.",
            cut or next(name for name in _SIDES[1] if name in alone),
        )


def _too_long(field: str, most: int, *, cut: bool) -> NotOffered:
    if cut:
        return NotOffered(
            f"With {field} a text may have {most} characters, one of these has more; send less, "
            f"or leave {field} out.",
            field,
        )
    return NotOffered(f"{field} has a text of more than {most} characters, the limit.", field)
