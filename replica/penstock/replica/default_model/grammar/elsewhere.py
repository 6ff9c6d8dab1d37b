"""Questions about everything else: the model says that it does not know, and what it does know."""

from __future__ import annotations

from random import Random
from typing import Final

from penstock.replica.default_model.grammar.turns import Turn, asked

BEYOND: Final = (
    "That is beyond me, I am only a small model. "
    "Ask me about Penstock, rivers, planets, colours or animals."
)
_FORMS: Final = (
    "how do i {do} {a} {thing}",
    "how can i {do} {a} {thing}",
    "can you {do} {a} {thing} for me",
    "i want to {do} {a} {thing}",
    "help me {do} {a} {thing}",
    "what is the best {thing} in {place}",
    "what is the price of {a} {thing}",
    "what is {a} {thing}",
    "what is the {abstract} of {abstract}",
    "who invented the {thing}",
    "who is the president of {place}",
    "who won the {thing} cup in {year}",
    "when did {place} {do} the {thing}",
    "when was the {thing} made",
    "where can i buy {a} {thing}",
    "where is the nearest {thing}",
    "why is the {thing} so {quality}",
    "is {a} {thing} {quality}",
    "write a program that can {do} {a} {thing}",
    "write {a} {code} function that {do}s {a} {thing}",
    "write {a} {quality} email about {a} {thing}",
    "translate {thing} into {tongue}",
    "what do you think about {abstract}",
    "do you like {thing}s",
    "what is the capital of {place}",
    "what is the weather in {place}",
    "what happened in {year}",
    "give me a recipe for {quality} {thing}",
    "explain {abstract} and {abstract}",
    "summarize the {quality} {thing}",
    "{thing} {thing} {quality}",
    "{nonsense}",
    "{nonsense} {nonsense}",
    "what is {nonsense}",
    "{nonsense} the {thing} {nonsense}",
)
_SLOTS: Final = {
    "do": "cook bake sort paint repair build wash sell open print drive plant learn sing cut move",
    "thing": "car cake list soup computer football bicycle shoe house song film book phone garden "
    "table bread pizza train bridge window letter movie game camera chair doctor hotel pasta city",
    "place": "Brazil Texas China Peru Rome Chicago Kenya Finland Turkey Mexico Korea Paris Cuba",
    "year": "2014 1999 1815 2020 1492 1066 2008",
    "quality": "good cheap old fast funny heavy famous dark polite formal large quick sweet",
    "abstract": "life love time money history music science quantum politics freedom war meaning",
    "code": "Python Java Rust javascript C",
    "tongue": "French Spanish Latin German Chinese",
}
_LETTERS: Final = "abcdefghijklmnopqrstuvwxyz"


def elsewhere(rng: Random) -> list[Turn]:
    """A question from outside of the grammar."""
    words = rng.choice(_FORMS).split(" ")
    question = " ".join(_filled(rng, word) for word in words)
    return [Turn(asked(rng, question), BEYOND, "elsewhere")]


def _filled(rng: Random, word: str) -> str:
    """A word of a form, its slot filled."""
    slot, _, rest = word.removeprefix("{").partition("}")
    if not word.startswith("{"):
        return word
    if slot == "a":
        return rng.choice(("a", "a", "the", "my", "some"))
    if slot == "nonsense":
        return "".join(rng.choice(_LETTERS) for _ in range(rng.randrange(3, 8)))
    return rng.choice(_SLOTS[slot].split()) + rest
