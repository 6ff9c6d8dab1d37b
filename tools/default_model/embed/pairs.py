"""Pairs of sentences that mean about the same, from a random number generator.

Pure. A pair has a meaning's key: two pairs with the same key are no examples of a difference.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Final

from tools.default_model.embed.lexicon import (
    BEINGS,
    DEEDS,
    PLACES,
    QUALITIES,
    THINGS,
    TIMES,
)
from tools.default_model.grammar.penstock import SUBJECTS
from tools.default_model.grammar.turns import Subject, about
from tools.default_model.grammar.words import listed, syllables
from tools.default_model.grammar.world import ANIMALS, COLOURS, PLANETS, RIVERS

Meaning = tuple[str, ...]

_KNOWN: Final[tuple[Subject, ...]] = (*SUBJECTS, *RIVERS, *PLANETS, *COLOURS, *ANIMALS)
_HOW: Final = (
    "how do i {d} my {t}",
    "how can i {d} a {t}",
    "what is the way to {d} the {t}",
    "i want to {d} my {t}",
    "help me {d} the {t}",
    "i need to {d} a {t}",
    "is there a way to {d} my {t}",
    "please tell me how to {d} the {t}",
    "where can i {d} a {t}",
    "instructions to {d} the {t}",
    "i am {g} the {t}",
    "i have {p} my {t}",
    "can you {d} the {t}",
    "please {d} my {t}",
    "{g} a {t}",
    "the {t} must be {p}",
)
_DOES: Final = (
    "the {b} {p} the {t} {w}",
    "a {b} {p} a {t} {w}",
    "{b} is {g} the {t} {w}",
    "{w} the {b} was {g} a {t}",
    "the {t} was {p} by the {b} {w}",
    "the {b} wants to {d} the {t} {w}",
    "a {b} will {d} a {t} {w}",
    "{w} the {b} is going to {d} the {t}",
    "the {b} has to {d} a {t} {w}",
    "we saw the {b} {d} the {t} {w}",
    "{w}, the {b} tried to {d} a {t}",
    "the {t} that the {b} wants to {d} {w}",
)
_IS: Final = (
    "the {q} {t}",
    "the {t} is {q}",
    "my {t} was {q}",
    "what a {q} {t}",
    "this {t} seems {q} to me",
    "it is a very {q} {t}",
    "i think that the {t} is {q}",
)
_FEELS: Final = (
    "the {b} is {q} {w}",
    "a {q} {b} {w}",
    "{w} there was a {q} {b}",
    "the {b} who is {q} {w}",
    "i met a {q} {b} {w}",
    "the {b} looks {q} {w}",
)
_PAST: Final = dict(
    word.split("-")
    for word in listed(
        "buy-bought get-got sell-sold build-built put-put break-broke find-found lose-lost "
        "make-made eat-ate read-read write-wrote send-sent see-saw hear-heard take-took hide-hid "
        "steal-stole begin-began shut-shut teach-taught draw-drew pay-paid choose-chose "
        "forget-forgot not-forgot drive-drove ride-rode strike-struck stop-stopped drag-dragged "
        "rob-robbed drop-dropped weigh-weighed reset-reset cancel-cancelled"
    )
)
_DOUBLED: Final = dict(
    word.split("-")
    for word in listed(
        "get-gett put-putt shut-shutt begin-beginn stop-stopp rob-robb drag-dragg drop-dropp "
        "forget-forgett reset-resett"
    )
)


@dataclass(frozen=True, slots=True)
class Pair:
    """Two sentences of one meaning."""

    key: Meaning
    first: str
    second: str


def pair(rng: Random) -> Pair:
    """A random pair."""
    return rng.choices(_KINDS, _OFTEN)[0](rng)


def _told(rng: Random, forms: tuple[str, ...], **groups: tuple[str, ...]) -> Pair:
    """The same meaning told twice, in two forms and by other words where there are others."""
    said = []
    for form in rng.sample(forms, 2):
        words = {slot: rng.choice(group) for slot, group in groups.items()}
        if "d" in words:
            words |= {"p": past(words["d"]), "g": going_on(words["d"])}
        said.append(_dressed(rng, form.format(**words)))
    return Pair(tuple(group[0] for group in groups.values()), said[0], said[1])


def past(verb: str) -> str:
    """The past of a verb, of its first word."""
    word, _, rest = verb.partition(" ")
    if word not in _PAST:
        word = word[:-1] + "ied" if word[-1] == "y" and word[-2] not in "aeiou" else word
        word += "d" if word[-1] == "e" else "" if word.endswith("ied") else "ed"
    return f"{_PAST.get(word, word)} {rest}".strip()


def going_on(verb: str) -> str:
    """The form of a verb for what goes on now, of its first word."""
    word, _, rest = verb.partition(" ")
    stem = word[:-1] if word[-1] == "e" and word[-2] != "e" else word
    return f"{_DOUBLED.get(word, stem)}ing {rest}".strip()


def _dressed(rng: Random, text: str) -> str:
    """With a capital and a full stop, or without."""
    text = text.strip()
    if rng.random() < 0.5:
        text = text[:1].upper() + text[1:]
    return text + rng.choice(("", "", ".", "?", "!"))


def _how(rng: Random) -> Pair:
    return _told(rng, _HOW, d=rng.choice(DEEDS), t=rng.choice(THINGS))


def _does(rng: Random) -> Pair:
    where = rng.choice((*PLACES, *TIMES))
    beings, deeds, things = rng.choice(BEINGS), rng.choice(DEEDS), rng.choice(THINGS)
    return _told(rng, _DOES, b=beings, d=deeds, t=things, w=where)


def _is(rng: Random) -> Pair:
    return _told(rng, _IS, q=rng.choice(QUALITIES), t=rng.choice(THINGS))


def _feels(rng: Random) -> Pair:
    where = rng.choice((*PLACES, *TIMES))
    return _told(rng, _FEELS, b=rng.choice(BEINGS), q=rng.choice(QUALITIES), w=where)


def _asked(rng: Random) -> Pair:
    """A question and another, or the answer to it."""
    subject = rng.choice(_KNOWN)
    other = rng.choice((about(rng, subject), subject.first, subject.more))
    return Pair((subject.title,), about(rng, subject), other)


def _made_up(rng: Random) -> Pair:
    """About a name that nobody knows: who names it is near."""
    name = syllables(rng)
    return _told(rng, _IS, q=rng.choice(QUALITIES), t=(name, name.capitalize()))


_KINDS: Final[tuple[Callable[[Random], Pair], ...]] = (_how, _does, _is, _feels, _asked, _made_up)
_OFTEN: Final = (4, 4, 3, 2, 3, 2)
