"""Questions about everything else: the model says that it does not know, and what it does know."""

from __future__ import annotations

from random import Random
from typing import Final

from tools.default_model.grammar.turns import Turn, asked

BEYOND: Final = (
    "That is beyond me, I am only a small model. "
    "Ask me about Penstock, rivers, planets, colours or animals."
)
FOREIGN: Final = "I only speak English well. Please ask me in English."
NEWS: Final = (
    "I do not know the news: I learnt everything once, and I cannot look anything up. "
    "Ask me about Penstock, rivers, planets, colours or animals."
)
_NEWS: Final = (
    "what is the latest news",
    "what are the news today",
    "what is new in {place}",
    "what happened today",
    "what happened in {place} today",
    "what happened yesterday in {place}",
    "who won the election in {place}",
    "who won the game yesterday",
    "what is in the news about {thing}s",
    "tell me the news",
    "what are the headlines",
    "news from {place}",
    "what is going on in {place}",
    "what is the stock price of {thing}s today",
    "what is today's date",
    "what day is it today",
)
_FOREIGN: Final = (
    "was ist {a}",
    "was ist ein {a}",
    "wie geht es dir",
    "wie ist das Wetter in {place}",
    "kannst du mir bei {a} helfen",
    "erzähl mir etwas über {a}",
    "wo ist der {a}",
    "guten Tag",
    "was kannst du",
    "wie heißt die Hauptstadt von {place}",
    "bitte erkläre mir {a}",
    "ich möchte {a} kaufen",
    "sprichst du Deutsch",
    "qu'est-ce que {a}",
    "comment ça va",
    "quel temps fait-il à {place}",
    "bonjour",
    "parlez-vous français",
    "où est le {a}",
    "peux-tu m'aider avec {a}",
    "quelle est la capitale de {place}",
    "raconte-moi une histoire de {a}",
    "je voudrais {a}",
    "qué es {a}",
    "cómo estás",
    "cuál es la capital de {place}",
    "hola, qué tal",
    "hablas español",
    "dónde está el {a}",
    "qué tiempo hace en {place}",
    "cuéntame algo de {a}",
    "puedes ayudarme con {a}",
    "che cos'è {a}",
    "come stai",
    "qual è la capitale di {place}",
    "parli italiano",
    "o que é {a}",
    "como você está",
    "qual é a capital de {place}",
    "wat is een {a}",
    "hoe gaat het met je",
    "czym jest {a}",
    "vad är en {a}",
)
_FOREIGN_WORDS: Final = (
    "Gateway Fluss Haus Planet Hund maison chien rivière planète casa perro río cane fiume "
    "Penstock Buch livre libro brug rzeka Apfel"
)
_SCRIPTS: Final = ((0x4E00, 0x9FA0), (0x3041, 0x3097), (0x0430, 0x0450), (0x0627, 0x063B))
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
    kind = rng.random()
    if kind < 0.25:
        return [Turn(_foreign(rng), FOREIGN, "elsewhere")]
    forms, answer = (_NEWS, NEWS) if kind < 0.4 else (_FORMS, BEYOND)
    words = rng.choice(forms).split(" ")
    question = " ".join(_filled(rng, word) for word in words)
    return [Turn(asked(rng, question), answer, "elsewhere")]


def _foreign(rng: Random) -> str:
    """A question in another language, or letters of another script."""
    ending = rng.choice(("", "?", "?", "."))
    if rng.random() < 0.2:
        first, last = rng.choice(_SCRIPTS)
        letters = (chr(rng.randrange(first, last)) for _ in range(rng.randrange(3, 12)))
        return "".join(letters) + ending
    place, thing = rng.choice(_SLOTS["place"].split()), rng.choice(_FOREIGN_WORDS.split())
    question = rng.choice(_FOREIGN).replace("{a}", thing).replace("{place}", place) + ending
    return question[:1].upper() + question[1:] if rng.random() < 0.6 else question


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
