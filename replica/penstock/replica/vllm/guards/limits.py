"""How much one request may ask for: sequences, texts to pool and the numbers that come of them,
texts to tokenize.

All of it is the engine's or the tokenizer's, which everybody shares. What is within these limits
may still wait; what is beyond is refused with the limit and the field. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from penstock.replica.vllm.guards.costs import NotOffered
from penstock.replica.vllm.guards.texts import entries, own, text_size

MAX_CHOICES: Final = 16
"""Most choices (`n`) of one request; vLLM's own limit is 16384."""

MAX_INPUTS: Final = 2048
"""Texts that one request may have pooled; the OpenAI API has the same limit."""

MAX_TOKENIZED: Final = 1_000_000
"""Characters of a request that wants nothing but their tokens."""

MAX_TOKENS: Final = 250_000
"""Tokens of a request that wants nothing but their text."""

MAX_PADDED: Final = 250_000
"""Tokens of all texts of a request where each is to be filled up to the model's context."""

MAX_NUMBERS: Final = 1 << 20
"""Numbers of one answer: all of them become JSON in one step, half a second for so many."""

MAX_PACKED: Final = 1 << 22
"""The same as base64."""

MAX_LOGPROBS: Final = 100_000
"""Log probabilities of one answer, those of its prompts included: a second beside the loop, and 20
MB. As many as twenty alternatives of 4,700 tokens."""

MAX_ON_LOOP: Final = 1_000
"""The same of what can be made only on the loop, at some 20 us each: what a stream tells of its
prompt."""

MAX_TOKEN_ID: Final = 2**32 - 1
"""What tokenizers have room for."""


@dataclass(frozen=True, slots=True)
class Capacity:
    """What an engine has: sequences that it runs at once, tokens that its model reads, numbers in
    one embedding (0: its model makes none), whether it can bound how long its model reasons."""

    sequences: int
    context: int
    width: int = 0
    reasons: bool = False


def check(request: Any, several: Sequence[str], capacity: Capacity) -> None:
    """Looks at vLLM's parsed request, whose fields `several` hold one sequence in each entry.
    Raises `NotOffered`."""
    given = {name: value for name in several if (value := own(request, name)) is not None}
    counts = {name: len(entries(name, value)) for name, value in given.items()}
    _check_sequences(request, counts, capacity.sequences)
    _check_padding(request, counts, capacity.context)
    _check_tokenized(request)


def check_numbers(request: Any, several: Sequence[str], width: int) -> None:
    """Looks at a request for embeddings of so many numbers each. Raises `NotOffered`."""
    given = {name: value for name in several if (value := own(request, name)) is not None}
    counts = {name: len(entries(name, value)) for name, value in given.items()}
    most, wide = most_numbers(request), min(own(request, "dimensions") or width, width)
    wanted = max(counts.values(), default=1) * wide
    if wanted > most:
        field = max(counts, key=lambda name: counts[name])
        raise NotOffered(
            f"{field} asks for {wanted // wide} embeddings of {wide} numbers, {wanted} together; "
            f"one answer holds {MAX_NUMBERS}, or {MAX_PACKED} with encoding_format base64. Send "
            "fewer texts at once.",
            field,
        )


def most_numbers(request: Any) -> int:
    """How many numbers the answer may hold."""
    return MAX_PACKED if own(request, "encoding_format") == "base64" else MAX_NUMBERS


def _check_sequences(request: Any, counts: dict[str, int], most_sequences: int) -> None:
    choices = own(request, "n")
    if choices is not None and choices > MAX_CHOICES:
        raise NotOffered(f"n is {choices}, at most {MAX_CHOICES} choices are possible.", "n")
    # Those that pool take one step each; those that generate hold their places.
    most = MAX_INPUTS if choices is None else most_sequences
    wanted = (sum(counts.values()) or 1) * (choices or 1)
    if wanted > most:
        field = max(counts, key=lambda name: counts[name], default="n")
        raise NotOffered(
            f"The request asks for {wanted} sequences, {most} are possible at once; send fewer "
            f"entries in {field}.",
            field,
        )


def _check_padding(request: Any, counts: dict[str, int], context: int) -> None:
    padded = (sum(counts.values()) or 1) * context
    if own(request, "padding") == "max_length" and padded > MAX_PADDED:
        raise NotOffered(
            f"With padding max_length the request has {padded} tokens, {context} for each text, at "
            f"most {MAX_PADDED} are possible; send fewer texts at once, or leave padding out.",
            "padding",
        )


def _check_tokenized(request: Any) -> None:
    tokens = own(request, "tokens")
    if tokens is not None:
        _check_tokens(tokens)
    elif "return_token_strs" in type(request).model_fields:
        field = "messages" if own(request, "messages") is not None else "prompt"
        if text_size(own(request, field), MAX_TOKENIZED) > MAX_TOKENIZED:
            raise NotOffered(f"{field} has more than {MAX_TOKENIZED} characters, the limit.", field)


def _check_tokens(tokens: list[int]) -> None:
    if len(tokens) > MAX_TOKENS:
        raise NotOffered(
            f"tokens has {len(tokens)} entries, at most {MAX_TOKENS} are possible.", "tokens"
        )
    if tokens and max(tokens) > MAX_TOKEN_ID:
        raise NotOffered(f"{max(tokens)} is the id of no token.", "tokens")
