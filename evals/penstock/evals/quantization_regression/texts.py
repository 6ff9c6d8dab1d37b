"""What is asked for to score a text, and what is read from the replies. Pure.

Scored are token ids: the prompt as the primary's chat template renders it, and behind it the
primary's answer. So both are asked for the same tokens, and nothing is cut anew where prompt and
answer meet.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from penstock.evals.comparison.pair import Answer
from penstock.evals.comparison.questions import Question

TOKENIZE_PATH: Final = "/tokenize"
SCORE_PATH: Final = "/v1/completions"
_TEMPLATE_FIELDS: Final = ("tools", "chat_template", "chat_template_kwargs")
"""Fields of a chat request that its prompt is made of too."""
_LEAST: Final = -50.0
"""Engines write what is impossible as any large number; so unlikely is as good as impossible."""


class NotScored(ValueError):
    """A reply that holds no scores of the text."""


@dataclass(frozen=True, slots=True)
class Tokens:
    """A text to score, and the prompt that it answers."""

    prompt: tuple[int, ...]
    answer: tuple[int, ...]

    @property
    def together(self) -> list[int]:
        """All of them."""
        return [*self.prompt, *self.answer]


def text_of(answer: Answer) -> str:
    """What can be scored of an answer: its text, where that is one and all of it."""
    if answer.failed or answer.calls or len(answer.choices) != 1:
        return ""
    return answer.text


def prompt_body(question: Question, model: str) -> dict[str, Any]:
    """Asks for the tokens of the prompt, rendered as a chat's."""
    told = {name: question.request[name] for name in _TEMPLATE_FIELDS if name in question.request}
    messages = [dict(each) for each in question.messages]
    return {**told, "model": model, "messages": messages, "add_generation_prompt": True}


def answer_body(text: str, model: str) -> dict[str, Any]:
    """Asks for the tokens of an answer, which a prompt comes before."""
    return {"model": model, "prompt": text, "add_special_tokens": False}


def score_body(tokens: Tokens, model: str) -> dict[str, Any]:
    """Asks how likely each token is after those before it. The one token that has to be answered
    is not looked at."""
    return {"model": model, "prompt": tokens.together, "max_tokens": 1, "prompt_logprobs": 0}


def tokens_from(told: Any) -> tuple[int, ...]:
    """The ids in a reply. Raises `NotScored`."""
    found = told.get("tokens") if isinstance(told, Mapping) else None
    if not isinstance(found, list) or not all(type(each) is int for each in found):
        raise NotScored("no tokens")
    return tuple(found)


def logprobs_from(told: Any, tokens: Tokens) -> tuple[float, ...]:
    """The natural log probabilities of the answer's tokens. Raises `NotScored`."""
    try:
        entries: Sequence[Any] = told["choices"][0]["prompt_logprobs"]
        behind = zip(tokens.together, entries, strict=True)
        answer = list(behind)[len(tokens.prompt) :]
        told_of = [float(entry[str(token)]["logprob"]) for token, entry in answer]
        return tuple(max(each, _LEAST) for each in told_of)
    except (LookupError, TypeError, AttributeError, ValueError) as error:
        raise NotScored(f"no prompt_logprobs of the tokens that were sent: {error!r}") from error
