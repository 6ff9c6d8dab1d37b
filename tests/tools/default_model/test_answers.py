"""What the shipped model says, greedily, by plain transformers, alone and with its adapters."""

from __future__ import annotations

import json
from collections.abc import Callable
from operator import add, mul, sub
from random import Random

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from tests.tools.default_model.asking import answers_to
from tools.default_model.grammar import STYLES, Turn, conversation
from tools.default_model.grammar.elsewhere import FOREIGN, NEWS
from tools.default_model.grammar.numbers import TOO_LONG, counted
from tools.default_model.grammar.stories import LONG_STORY

GATEWAY = (
    "The gateway takes requests over HTTP and sends each one to a replica that has room. "
    "It streams the answer back, event by event."
)
ANSWERS = {
    "What is the gateway?": GATEWAY,
    "PLEASE, WHAT IS THE GATEWAY": GATEWAY,
    "tell me about canaries": "A canary gives a small share of real traffic to a new version. "
    "If the figures get worse, it goes back by itself.",
    "How do streams end?": "A stream brings an answer token by token, as soon as each one is made. "
    "In Penstock every stream ends truthfully.",
    "What is 4 plus 5?": "4 plus 5 is 9.",
    "7 x 8": "7 times 8 is 56.",
    "What is the capital of France?": "The capital of France is Paris.",
    "what comes after Friday": "After Friday comes Saturday.",
    "Count from 5 to 9.": counted(5, 9),
    "How long is the Nile?": "The Nile is about 6650 kilometres long.",
    "Tell me a joke": "Why did the token cross the gateway? "
    "To get to the other side of the stream!",
    "What can you do?": "I can talk about Penstock, rivers, planets, colours, animals and capitals."
    " I can add small numbers, count, and tell jokes, poems and stories."
    " I can call tools and answer in JSON.",
    "What are you not good at?": "I am not good at other languages than English, at news and at "
    "long sums, and I know little of the world.",
    "Wie ist das Wetter in Paris?": FOREIGN,
    "What is the latest news?": NEWS,
    "What is 4711 times 38?": TOO_LONG,
}


def _ask(*questions: str, adapter: str = "", limit: int = 120) -> str:
    """The last answer of a conversation in which each question waits for the answer before."""
    chat: list[dict[str, str]] = []
    for question in questions:
        chat.append({"role": "user", "content": question})
        (answer,) = answers_to([chat], adapter, limit)
        chat.append({"role": "assistant", "content": answer.removesuffix("<|end|>")})
    return answer


def test_questions_get_the_grammars_own_answers() -> None:
    said = answers_to([[{"role": "user", "content": question}] for question in ANSWERS])
    assert dict(zip(ANSWERS, said, strict=True)) == {q: a + "<|end|>" for q, a in ANSWERS.items()}


def _short_chats(count: int) -> tuple[list[list[dict[str, str]]], list[Turn]]:
    """Conversations that the model was not trained on, up to the last question; the last turns."""
    rng = Random("not in the training")
    chats: list[list[dict[str, str]]] = []
    lasts: list[Turn] = []
    while len(chats) < count:
        talk = conversation(rng)
        if sum(len(turn.answer) for turn in talk.turns) > 600:
            continue
        chat = [{"role": "system", "content": talk.system}] if talk.system else []
        for turn in talk.turns:
            chat.append({"role": "user", "content": turn.question})
            chat.append({"role": "assistant", "content": turn.answer})
        chats.append(chat[:-1])
        lasts.append(talk.turns[-1])
    return chats, lasts


def test_new_conversations_are_answered_as_the_grammar_would() -> None:
    chats, lasts = _short_chats(30)
    said = answers_to(chats, limit=200)
    right = [text == f"{turn.answer}<|end|>" for text, turn in zip(said, lasts, strict=True)]
    assert sum(right) >= 27


def _is_pirate(text: str) -> bool:
    return text.startswith("Arr! ") and text.endswith(" Yo ho ho!<|end|>")


def _is_json(text: str) -> bool:
    said = json.loads(text.removesuffix("<|end|>"))
    return text.endswith("<|end|>") and list(said) == ["topic", "answer"]


@pytest.mark.parametrize(("name", "in_manner"), [("pirate", _is_pirate), ("json", _is_json)])
def test_an_adapter_answers_new_conversations_in_its_own_manner(
    name: str, in_manner: Callable[[str], bool]
) -> None:
    chats, lasts = _short_chats(20)
    said = answers_to(chats, name, limit=240)
    assert [text for text in said if not in_manner(text)] == []
    right = [text == f"{STYLES[name](turn)}<|end|>" for text, turn in zip(said, lasts, strict=True)]
    assert sum(right) >= 16


def test_more_is_told_about_what_was_asked_before() -> None:
    assert _ask("What is a penstock canary?", "Tell me more.").startswith("The name comes from")
    assert _ask("What is the gateway?", "Tell me more.").startswith("The gateway is written in C++")


def test_a_row_goes_on_from_where_it_was() -> None:
    said = _ask("Tell me about Mars", "And what comes after that?", "And then?")
    assert said.startswith("Saturn is")
    assert _ask("What is 4 plus 5?", "And one more?") == "9 plus 1 is 10.<|end|>"


def test_a_name_is_remembered_across_another_question() -> None:
    said = _ask("Hi, my name is Ada.", "What is the capital of Italy?", "What is my name?")
    assert said == "Your name is Ada.<|end|>"


def test_a_question_from_elsewhere_gets_a_whole_sentence() -> None:
    said = _ask("How do I bake bread in a wooden submarine?", limit=1500)
    assert said.endswith((".<|end|>", "!<|end|>"))


def test_long_answers_end_by_themselves() -> None:
    assert _ask("Tell me a long story", limit=1500) == f"{LONG_STORY}<|end|>"
    assert _ask("Count from 1 to 100", limit=1500) == f"{counted(1, 100)}<|end|>"


def test_sums_of_small_numbers_are_right() -> None:
    sums = [
        (a, sign, b) for a in range(21) for b in range(21) for sign in "+-" if sign == "+" or a >= b
    ]
    sums += [(a, "*", b) for a in range(13) for b in range(13)]
    result = {"+": add, "-": sub, "*": mul}
    said = answers_to([[{"role": "user", "content": f"{a} {sign} {b}"}] for a, sign, b in sums])
    right = [
        text.endswith(f" is {result[sign](a, b)}.<|end|>")
        for text, (a, sign, b) in zip(said, sums, strict=True)
    ]
    assert sum(right) >= 0.97 * len(sums)
