"""Turns of a conversation, subjects one may be asked about, and the many ways to ask."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Final

_OPENINGS: Final = (
    "please, ",
    "hey, ",
    "hello, ",
    "hi! ",
    "ok, ",
    "so, ",
    "quick question: ",
    "one more thing: ",
    "thanks! ",
    "dear model, ",
    "now, ",
    "i wonder, ",
)
_ENDINGS: Final = (
    "",
    "",
    "",
    "?",
    "?",
    "?",
    "?",
    ".",
    ".",
    "!",
    "??",
    " please",
    ", please.",
    " please?",
)
_WHAT: Final = (
    "what is {}",
    "what is {}",
    "what's {}",
    "what are {}",
    "what does {} do",
    "what does {} mean",
    "tell me about {}",
    "tell me about {}",
    "tell me something about {}",
    "explain {}",
    "explain {} to me",
    "can you explain {}",
    "describe {}",
    "how does {} work",
    "what do you know about {}",
    "i want to know about {}",
    "i have a question about {}",
    "why do i need {}",
    "and {}",
    "{}",
)
_MORE: Final = (
    "tell me more",
    "tell me more",
    "tell me more about that",
    "more",
    "more please",
    "go on",
    "continue",
    "what else",
    "what else do you know about that",
    "and what else",
    "can you tell me more",
    "say more",
    "interesting, tell me more",
)

NEXT: Final = (
    "what comes after that",
    "and what comes after that",
    "what comes next",
    "and then",
    "and after that",
    "what is next",
    "next",
    "and the next one",
)
"""What to say for the next one in a row."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One question and its answer; `topic` is one word for what they are about."""

    question: str
    answer: str
    topic: str


@dataclass(frozen=True, slots=True)
class Subject:
    """Something one can be asked about: by any of `names`, and then for more."""

    title: str
    names: tuple[str, ...]
    first: str
    more: str
    topic: str


def asked(rng: Random, question: str) -> str:
    """The question as a person might type it: with a please, a capital, a slip of the finger."""
    if rng.random() < 0.2:
        question = rng.choice(_OPENINGS) + question
    question += rng.choice(_ENDINGS)
    if rng.random() < 0.04:
        question = _mistyped(rng, question)
    case = rng.random()
    if case < 0.5:
        return question[:1].upper() + question[1:]
    if case < 0.6:
        return question.lower()
    if case < 0.66:
        return question.upper()
    return question


def _mistyped(rng: Random, text: str) -> str:
    """The text with a letter left out of a long word; short ones and figures would mean another."""
    words = text.split(" ")
    long = [at for at, word in enumerate(words) if len(word) > 5 and word.isalpha()]
    if long:
        at = rng.choice(long)
        gap = rng.randrange(1, len(words[at]))
        words[at] = words[at][:gap] + words[at][gap + 1 :]
    return " ".join(words)


def about(rng: Random, subject: Subject) -> str:
    """A question that the subject's first answer answers."""
    return asked(rng, rng.choice(_WHAT).format(rng.choice(subject.names)))


def thread(rng: Random, subject: Subject) -> list[Turn]:
    """A question about the subject, and sometimes the follow-ups that lean on it."""
    turns = [Turn(about(rng, subject), subject.first, subject.topic)]
    if rng.random() < 0.4:
        turns.append(Turn(asked(rng, rng.choice(_MORE)), subject.more, subject.topic))
        if rng.random() < 0.3:
            turns.append(Turn(asked(rng, rng.choice(_MORE)), enough(subject), subject.topic))
    return turns


def enough(subject: Subject) -> str:
    """The answer once everything about a subject is said."""
    return f"That is all I know about {subject.title}. Ask me about something else!"


def everything(opening: str, subjects: Sequence[Subject], closing: str) -> str:
    """A long answer: a paragraph for each subject."""
    paragraphs = [f"{subject.first} {subject.more}" for subject in subjects]
    return "\n\n".join([opening, *paragraphs, closing])
