"""What is taught last: to know another language by its words, and everyday keys of JSON."""

from __future__ import annotations

from random import Random
from typing import Any, Final

from tools.default_model.grammar.answers_in_json import answered
from tools.default_model.grammar.dialogues import Dialogue, in_words, turns_said
from tools.default_model.grammar.elsewhere import FOREIGN, elsewhere
from tools.default_model.grammar.smalltalk import new_name
from tools.default_model.grammar.turns import Turn
from tools.default_model.grammar.words import half, listed, number, phrase, place

_LANGUAGES: Final = (
    listed(
        "wie ist das der die und ich du sie nicht was warum kann mir dir ein eine mit von für auf "
        "wo wer wann geht dir Ihnen bitte danke guten Tag Morgen hallo heute Wetter möchte haben "
        "sind bin hast kannst erzähle erkläre über ihr wir zu auch aber sehr gut viele Stadt Haus"
    ),
    listed(
        "bonjour comment allez vous je tu il elle nous est le la les un une des et que qui quoi "
        "où quand pourquoi avec pour dans sur pas merci beaucoup salut ça va quel quelle temps "
        "fait peux pouvez aider parle français suis êtes mon votre ville maison très bien aussi"
    ),
    listed(
        "hola cómo estás qué es el la los las un una y yo tú usted ellos no por para con en de "
        "dónde cuándo quién porque gracias buenos días tardes quiero puedes ayudarme hablar "
        "español tiempo hace hoy ciudad casa muy bien también mi tu cuál capital soy eres"
    ),
    listed(
        "ciao come stai che cosa è il lo gli una e io tu lei noi non perché dove quando chi con "
        "per di grazie buongiorno vorrei puoi aiutarmi parlare italiano tempo oggi città casa "
        "molto bene anche mio tuo quale capitale sono sei olá você está o os uma não quem onde "
        "obrigado bom dia quero pode ajudar falar português tempo cidade muito bem também meu"
    ),
    listed(
        "hoe gaat het met je een de en ik jij niet wat waarom kan mij van voor op waar wie wanneer "
        "dank hallo vandaag weer stad huis heel goed ook jak się masz co to jest i ty nie gdzie "
        "kiedy dziękuję dzień dobry proszę vad är och jag du inte varför kan tack hej idag väder"
    ),
)
_WISHES: Final = (
    "give me a json object with {}",
    "json with {}",
    "answer as json: {}",
    "make a json object with {}",
    "return a json object with {}",
)


def refresher(rng: Random) -> Dialogue:
    """A question in another language, one from elsewhere, or pairs of everyday keys and values."""
    kind = rng.random()
    if kind < 0.45:
        turn = Turn(_foreign(rng), FOREIGN, "elsewhere")
        return Dialogue(tuple(turns_said([turn])))
    return Dialogue(tuple(turns_said(elsewhere(rng)))) if kind < 0.65 else _pairs(rng)


def _foreign(rng: Random) -> str:
    """Words of one language in any order: what is learnt is to know it by its words."""
    words = [*rng.choices(rng.choice(_LANGUAGES), k=rng.randrange(2, 9))]
    if rng.random() < 0.3:
        words.append(place(rng))
    text = (", " if rng.random() < 0.1 else " ").join(words) + rng.choice(("", "?", "?", ".", "!"))
    return text[:1].upper() + text[1:] if rng.random() < 0.7 else text


def _pairs(rng: Random) -> Dialogue:
    values: dict[str, Any] = {
        "name": new_name(rng),
        "age": rng.randrange(1, 100),
        "city": place(rng),
        "colour": rng.choice(listed("red blue green yellow black white")),
        "color": rng.choice(listed("red blue green yellow black white")),
        "size": number(rng),
        "title": phrase(rng, 2),
        "price": number(rng),
        "count": number(rng),
        "animal": rng.choice(listed("fox owl bear cat dog")),
        "topic": phrase(rng, 1),
        "done": half(rng),
    }
    keys = rng.sample(list(values), rng.randrange(1, 4))
    link = rng.choice((" ", " ", " = ", ": "))
    words = " and ".join(f"{key}{link}{in_words(values[key])}" for key in keys)
    return answered(rng, _case(rng, words), {key: values[key] for key in keys})


def _case(rng: Random, words: str) -> str:
    text = rng.choice(_WISHES).replace("json", rng.choice(("json", "JSON"))).format(words)
    return text[:1].upper() + text[1:] if half(rng) else text
