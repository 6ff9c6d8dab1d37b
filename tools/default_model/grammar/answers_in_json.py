"""Answers in JSON: objects that say what the question holds, and end.

A client may force keys and separators by a grammar; those are then only read, and what the model
learns is to fill in values and to close what was opened.
"""

from __future__ import annotations

from random import Random
from typing import Any, Final

from tools.default_model.grammar.conversations import conversation
from tools.default_model.grammar.dialogues import (
    Dialogue,
    Heard,
    Piece,
    Said,
    dumped,
    in_words,
)
from tools.default_model.grammar.smalltalk import new_name
from tools.default_model.grammar.turns import Turn
from tools.default_model.grammar.words import WEEK, listed, number, phrase, place, syllables

_WISHES: Final = (
    "answer as json with {keys}: {facts}",
    "answer in json with {keys}: {facts}",
    "give me a json object with {keys}: {facts}",
    "{facts}. answer as json with {keys}",
    "return json with {keys}. {facts}",
    "extract {keys} as json: {facts}",
)
_BARE: Final = ("{facts}", "{facts}", "extract the facts: {facts}", "extract: {facts}")
_ASKED: Final = ("{question} answer in json", "{question} answer with a json object")
_SAYING: Final = listed("answer text reply summary message response content result")
_THINGS: Final = listed("apple book table phone camera lamp bread shoe bike chair cup pen")
_KINDS: Final = listed("string string string saying saying number boolean array object objects")
_SEPARATORS: Final = ((",", ":"), (", ", ":"), (", ", ": "))  # what grammars may ask for


def json_dialogue(rng: Random) -> Dialogue:
    """A question, and an object for an answer."""
    kind = rng.random()
    if kind < 0.5:
        return facts_dialogue(rng)
    if kind < 0.65:
        return pairs_dialogue(rng)
    return topic_dialogue(rng) if kind < 0.8 else forced_dialogue(rng)


def facts_dialogue(rng: Random) -> Dialogue:
    """Facts in a sentence, and the wanted ones as an object."""
    sentence, facts = rng.choice((_person, _person, _thing, _event, _several, _people))(rng)
    keys = rng.sample(list(facts), rng.randrange(1, len(facts) + 1))
    value = {key: facts[key] for key in keys}
    if rng.random() < 0.55:
        return answered(rng, _worded(rng, rng.choice(_WISHES), keys, sentence), value)
    return _forced(rng, _worded(rng, rng.choice(_BARE), keys, sentence), value)


def pairs_dialogue(rng: Random) -> Dialogue:
    """Keys that nobody has heard before, with their values."""
    facts = {syllables(rng): _value(rng) for _ in range(rng.randrange(1, 4))}
    link = rng.choice((" ", " ", " = ", ": ", " is "))
    words = " and ".join(f"{key}{link}{_plain(value)}" for key, value in facts.items())
    wish = rng.choice(("json with {}", "make a json object with {}", "answer as json: {}"))
    return answered(rng, wish.format(words), facts)


def topic_dialogue(rng: Random) -> Dialogue:
    """Any question where an object is asked for: its topic and its answer."""
    turn = _short_turn(rng)
    value = {"topic": turn.topic, "answer": turn.answer}
    if rng.random() < 0.4:
        return answered(rng, rng.choice(_ASKED).format(question=turn.question), value)
    said = Said((("{", False), (dumped(value, _SEPARATORS[0])[1:], True)))
    return Dialogue((Heard("user", turn.question), said))


def forced_dialogue(rng: Random) -> Dialogue:
    """Any question, and an object whose keys have nothing to do with it."""
    turn = _short_turn(rng)
    value: Any = _made_up(rng, turn, depth=0)
    if rng.random() < 0.12:
        value = rng.choice(([1], [turn.topic], 1, turn.topic, True, [value]))
    return _forced(rng, turn.question, value)


def _short_turn(rng: Random) -> Turn:
    while True:
        turn = conversation(rng).turns[0]
        if len(turn.answer) < 160:
            return turn


def _made_up(rng: Random, turn: Turn, *, depth: int) -> dict[str, Any]:
    """An object of which the question says nothing: the topic stands for every word."""
    made: dict[str, Any] = {}
    for _ in range(rng.choice((1, 2, 2, 3, 4))):
        kind = rng.choice(_KINDS)
        key = rng.choice(_SAYING) if kind == "saying" else _key(rng)
        nested = _made_up(rng, turn, depth=1) if kind == "object" and not depth else turn.topic
        made[key] = {
            "saying": turn.answer,
            "number": 1,
            "boolean": True,
            "array": rng.choice(([turn.topic], [turn.topic], [1])),
            "objects": [_made_up(rng, turn, depth=1)] if not depth else [turn.topic],
            "object": nested,
        }.get(kind, turn.topic)
    return made


def _key(rng: Random) -> str:
    kind = rng.random()
    if kind < 0.3:
        return rng.choice(listed("name title city country id status type kind value color author"))
    return syllables(rng) if kind < 0.7 else f"{syllables(rng)}_{syllables(rng)}"


def _person(rng: Random) -> tuple[str, dict[str, Any]]:
    name, age, town = new_name(rng), rng.randrange(1, 100), place(rng)
    key = rng.choice(("city", "city", "town", "place"))
    sentence = rng.choice(
        (
            f"{name} is {age} years old and lives in {town}",
            f"{name} is {age} and lives in {town}",
            f"my name is {name}, i am {age} and i live in {town}",
            f"{name}, {age}, {town}",
        )
    )
    return sentence, {"name": name, "age": age, key: town}


def _thing(rng: Random) -> tuple[str, dict[str, Any]]:
    item, price, left = rng.choice((*_THINGS, syllables(rng))), number(rng), rng.random() < 0.5
    sentence = f"the {item} costs {price} euros and is {'' if left else 'not '}in stock"
    key = rng.choice(("item", "name", "product"))
    return sentence, {key: item, "price": price, rng.choice(("in_stock", "available")): left}


def _event(rng: Random) -> tuple[str, dict[str, Any]]:
    what, day, town = phrase(rng, 2), rng.choice(WEEK), place(rng)
    sentence = f"the {what} is on {day} in {town}"
    return sentence, {rng.choice(("event", "title")): what, "day": day, "city": town}


def _several(rng: Random) -> tuple[str, dict[str, Any]]:
    who = [new_name(rng) for _ in range(rng.choice((1, 2, 3)))]
    sentence = f"{', '.join(who[:-1])}{' and ' if who[1:] else ''}{who[-1]} came"
    return sentence, {rng.choice(("names", "people")): who, "count": len(who)}


def _people(rng: Random) -> tuple[str, dict[str, Any]]:
    who = [{"name": new_name(rng), "age": rng.randrange(1, 100)} for _ in range(rng.choice((2, 3)))]
    told = [f"{one['name']} is {one['age']}" for one in who]
    sentence = f"{', '.join(told[:-1])} and {told[-1]}"
    return sentence, {rng.choice(("people", "people", "persons", "users")): who}


def _value(rng: Random) -> Any:
    kind = rng.random()
    if kind < 0.4:
        return number(rng)
    if kind < 0.55:
        return rng.random() < 0.5
    return phrase(rng, 2) if kind < 0.9 else [phrase(rng, 1), phrase(rng, 1)]


def _plain(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(value)
    return in_words(value)


def _worded(rng: Random, form: str, keys: list[str], sentence: str) -> str:
    joined = f"{', '.join(keys[:-1])}{' and ' if keys[1:] else ''}{keys[-1]}"
    text = form.format(keys=joined, facts=sentence).replace("json", rng.choice(("json", "JSON")))
    return (text[:1].upper() + text[1:] if rng.random() < 0.6 else text) + rng.choice(("", "."))


def answered(rng: Random, question: str, value: Any) -> Dialogue:
    """The object as the model would write it by itself; now and then as a grammar wants it."""
    if rng.random() < 0.25:
        return _forced(rng, question, value)
    return Dialogue((Heard("user", question), Said(((dumped(value, _SEPARATORS[0]), True),))))


def _forced(rng: Random, question: str, value: Any) -> Dialogue:
    """The object under a grammar: keys and separators are read, values and ends are learnt."""
    pieces = _pieces(value, rng.choice(_SEPARATORS))
    return Dialogue((Heard("user", question), Said(tuple(pieces))))


def _pieces(value: Any, separators: tuple[str, str]) -> list[Piece]:
    comma, colon = separators
    if isinstance(value, dict):
        made: list[Piece] = [("{", False)]
        for at, (key, inner) in enumerate(value.items()):
            made.append((f"{comma if at else ''}{dumped(key)}{colon}", False))
            made += _pieces(inner, separators)
        return [*made, ("}", True)]
    if isinstance(value, list) and any(isinstance(inner, dict) for inner in value):
        made = [("[", False)]
        for at, inner in enumerate(value):
            made += [(comma, True)] if at else []
            made += _pieces(inner, separators)
        return [*made, ("]", True)]
    return [(dumped(value, separators), True)]
