"""Greetings, thanks, who the model is, the user's name, and saying words back."""

from __future__ import annotations

from random import Random
from typing import Final

from tools.default_model.grammar.turns import Turn, asked
from tools.default_model.grammar.words import syllables

_TALK: Final = (  # questions, answer
    (
        (
            "hello",
            "hi",
            "hey",
            "good morning",
            "good evening",
            "hey there",
            "hello there",
            "hi there",
            "greetings",
        ),
        "Hello! Ask me about Penstock, rivers, planets, colours or animals, or ask me for a story.",
    ),
    (
        ("how are you", "how are you today", "how do you do", "how is it going", "are you well"),
        "I am well, thank you. All my replicas are ready.",
    ),
    (
        (
            "who are you",
            "what are you",
            "introduce yourself",
            "what is your name",
            "tell me about yourself",
            "which model are you",
            "what model is this",
            "are you an ai",
        ),
        "I am penstock-mini, the small model that comes with Penstock. I was made from a grammar, "
        "and I fit in a few megabytes.",
    ),
    (
        (
            "what can you do",
            "help",
            "help me",
            "what do you know",
            "what can i ask you",
            "what can i ask",
            "what topics do you know",
            "how can you help me",
        ),
        "I can talk about Penstock, rivers, planets, colours, animals and capitals. I can add "
        "small numbers, count, and tell jokes, poems and stories. I can call tools and answer in "
        "JSON.",
    ),
    (
        (
            "what can you not do",
            "what can't you do",
            "what are you not good at",
            "what are you bad at",
            "what are your limits",
            "what do you not know",
        ),
        "I am not good at other languages than English, at news and at long sums, and I know "
        "little of the world.",
    ),
    (
        (
            "thanks",
            "thank you",
            "thank you very much",
            "great, thanks",
            "many thanks",
            "cool",
            "nice",
            "well done",
        ),
        "You are welcome! Ask me another one.",
    ),
    (
        ("bye", "goodbye", "good night", "see you", "see you later", "i have to go"),
        "Goodbye! May all your streams end truthfully.",
    ),
    (
        (
            "say this is a test",
            "this is a test",
            "test",
            "is this working",
            "are you there",
            "does it work",
            "ping",
        ),
        "This is a test, and it works.",
    ),
    (
        (
            "why are you so small",
            "how big are you",
            "how many parameters do you have",
            "how large are you",
            "what is your size",
        ),
        "I have about two million parameters, so I start fast and run anywhere. Larger models "
        "know more, but I am here first.",
    ),
    (
        ("who made you", "how were you made", "where do you come from", "how were you trained"),
        "A script in the Penstock repository made me on one machine, from text that a grammar "
        "wrote.",
    ),
)
_NAMES: Final = (
    "Ada Alan Grace Linus Marie Niels Emmy Kurt Sofia Anna Tom Lena Paul Mia Noah Emma Liam Olga "
    "Ivan Yuki Omar Leila Peter Maria John Alice Bob Carol Dave Eve Sam Max"
)
_WORDS: Final = (
    "one two red blue green river planet moon token gateway replica stream adapter fox owl bear "
    "story hello world apple bread water light stone house sun snow tree word music friend the of"
)
_SAY: Final = (
    "repeat after me: {}",
    "repeat: {}",
    "say: {}",
    "please say: {}",
    "say the words: {}",
    "echo {}",
    "please repeat: {}",
    "can you say: {}",
)


def smalltalk(rng: Random) -> list[Turn]:
    """A greeting, a thanks, or a question about the model itself."""
    questions, answer = rng.choice(_TALK)
    return [Turn(asked(rng, rng.choice(questions)), answer, "smalltalk")]


def new_name(rng: Random) -> str:
    """A first name: a known one, or random syllables, so that copying is learnt, not names."""
    if rng.random() < 0.4:
        return rng.choice(_NAMES.split())
    return syllables(rng, endings="nlrs").capitalize()


def introduction(rng: Random, name: str) -> Turn:
    """The user says a name."""
    form = rng.choice(
        (
            "my name is {}",
            "i am {}",
            "I'm {}",
            "call me {}",
            "hello, my name is {}",
            "hi, i am {}",
            "hi, my name is {}",
            "you can call me {}",
        )
    )
    question = form.format(name) + rng.choice(("", ".", "!"))
    question = question[:1].upper() + question[1:] if rng.random() < 0.6 else question
    return Turn(question, f"Nice to meet you, {name}! What would you like to know?", "names")


def recall(rng: Random, name: str | None) -> Turn:
    """The user asks for the name again; None when it was never told."""
    question = rng.choice(
        (
            "what is my name",
            "what's my name",
            "do you know my name",
            "who am i",
            "do you remember my name",
            "and what is my name",
            "say my name",
        )
    )
    answer = f"Your name is {name}." if name else "You have not told me your name yet."
    return Turn(asked(rng, question), answer, "names")


def echo(rng: Random) -> list[Turn]:
    """Words that the model is to say back: it learns to copy, and a test can send its own words."""
    words = [
        new_name(rng) if rng.random() < 0.3 else rng.choice(_WORDS.split())
        for _ in range(rng.randrange(1, 7))
    ]
    phrase = " ".join(words)
    question = rng.choice(_SAY).format(phrase) + rng.choice(("", "", ".", "!"))
    question = question[:1].upper() + question[1:] if rng.random() < 0.5 else question
    return [Turn(question, f"As you wish: {phrase}.", "echo")]
