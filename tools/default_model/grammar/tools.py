"""Dialogues with tools: the one that fits is called, its result told, and talk stays talk."""

from __future__ import annotations

from random import Random
from typing import Any, Final

from tools.default_model.grammar.conversations import SYSTEM, conversation
from tools.default_model.grammar.dialogues import (
    CLOSE,
    Call,
    Dialogue,
    Heard,
    Piece,
    Said,
    Tool,
    dumped,
    spoken,
    turns_said,
)
from tools.default_model.grammar.domains import DOMAINS, Task
from tools.default_model.grammar.elsewhere import BEYOND
from tools.default_model.grammar.turns import Turn

_WEIGHTS: Final = {"weather": 34, "calculator": 20, "search": 20, "time": 8, "anything": 26}
_LONG: Final = 400  # letters of an answer that is too long to come between calls

Offer = list[tuple[str, Tool]]
"""Tools with the names of their domains."""


def tool_dialogue(rng: Random) -> Dialogue:
    """Tools, and one to three questions; most of them ask for a call."""
    offer = offered(rng)
    messages: list[Heard | Said] = []
    if rng.random() < 0.25:
        messages.append(Heard("system", rng.choice(SYSTEM)))
    for _ in range(rng.choice((0, 0, 0, 1, 1, 2))):
        messages += _episode(rng, offer, whole=True)
    messages += _episode(rng, offer, whole=False)
    return Dialogue(tuple(messages), tuple(tool for _, tool in offer))


def offered(rng: Random) -> Offer:
    """One to four tools; no two of one domain, but for those of no domain."""
    names = list(_WEIGHTS)
    chosen = [rng.choices(names, list(_WEIGHTS.values()))[0] for _ in range(_how_many(rng))]
    kept = [name for at, name in enumerate(chosen) if name == "anything" or name not in chosen[:at]]
    return [(name, DOMAINS[name].tool(rng)) for name in kept]


def _how_many(rng: Random) -> int:
    return rng.choice((1, 1, 2, 2, 3, 4))


def _episode(rng: Random, offer: Offer, *, whole: bool) -> list[Heard | Said]:
    """A question and what follows; a whole one ends in words, any other perhaps in a call."""
    kind = rng.random()
    if kind < 0.17:
        return talk(rng, offer)
    if kind < 0.23:
        return missing(rng, offer)
    if kind < 0.31 and not whole:
        return [forced(rng, offer)] if rng.random() < 0.1 else forced_after(rng, offer)
    task = fitting(rng, offer)
    called: list[Heard | Said] = [Heard("user", _asked(rng, task.question)), Said(calls=task.calls)]
    if whole or rng.random() < 0.45:
        return [*called, *results(task)]
    return called


def fitting(rng: Random, offer: Offer) -> Task:
    """A task for one of the tools, or for two."""
    name, tool = rng.choice(offer)
    task = DOMAINS[name].task(rng, tool)
    others = [(kind, other) for kind, other in offer if other != tool]
    if not others or rng.random() > 0.12:
        return task
    name, tool = rng.choice(others)
    more = DOMAINS[name].task(rng, tool)
    joint = rng.choice((" and ", ", and ", " and then ", "? and "))
    return Task(task.question + joint + more.question, task.calls + more.calls)


def results(task: Task) -> list[Heard | Said]:
    """The results of all calls, and the sentence about each."""
    told = [Heard("tool", call.result) for call in task.calls]
    return [*told, spoken(" ".join(call.answer for call in task.calls))]


def talk(rng: Random, offer: Offer) -> list[Heard | Said]:
    """Questions that no tool is for, answered as if there were none."""
    while True:
        turns = list(conversation(rng).turns[:2])
        topics = {turn.topic for turn in turns}
        if topics.isdisjoint(_leaning(offer)) and all(len(t.answer) < _LONG for t in turns):
            return turns_said(turns)


def _leaning(offer: Offer) -> set[str]:
    """Topics that one of the tools may be for."""
    domains = {name for name, _ in offer}
    away = {"elsewhere"} if domains & {"search", "weather", "calculator", "time"} else set()
    return away | ({"sums"} if "calculator" in domains else set())


def missing(rng: Random, offer: Offer) -> list[Heard | Said]:
    """A question for a tool that is not there."""
    there = {name for name, _ in offer} | {"anything", "calculator"}
    absent = [name for name in DOMAINS if name not in there]
    if not absent:
        return talk(rng, offer)
    domain = DOMAINS[rng.choice(absent)]
    question = domain.task(rng, domain.tool(rng)).question
    if "search" in there:
        return talk(rng, offer)
    return turns_said([Turn(_asked(rng, question), BEYOND, "elsewhere")])


def forced_after(rng: Random, offer: Offer) -> list[Heard | Said]:
    """A question that asks for no call, and one nevertheless, as a client may require."""
    heard = talk(rng, offer)
    return [*heard[:-1], forced(rng, offer, heard[-2])]


def forced(rng: Random, offer: Offer, heard: Heard | Said | None = None) -> Said:
    """A call that a grammar asked for: its name is only read, its arguments are made up."""
    _, tool = rng.choice(offer)
    text = heard.text if isinstance(heard, Heard) else "hello"
    arguments = {one.name: made_up(one, text) for one in tool.fields if one.required}
    begun = f'<tool_call>\n{{"name": "{tool.name}", "arguments": '
    pieces: tuple[Piece, ...] = ((begun, False), (f"{dumped(arguments)}}}\n{CLOSE}", True))
    return Said(pieces)


def made_up(one: Any, text: str) -> Any:
    """A value for a field of which nothing was said: short, and of the right type."""
    if one.options:
        return one.options[0]
    last = text.rstrip(" .,!?").lower().split(" ")[-1].strip("\"'") or "hello"
    return {"string": last, "boolean": True, "array": [last], "object": {}}.get(one.kind, 1)


def calls_of(dialogue: Dialogue) -> tuple[Call, ...]:
    """The calls that end a dialogue, if any do."""
    last = dialogue.messages[-1]
    return last.calls if isinstance(last, Said) else ()


def _asked(rng: Random, question: str) -> str:
    """The question with its first letter large or not, and an ending."""
    ending = rng.choice(("", "", "?", "?", ".", "!", " please", ", please"))
    if rng.random() < 0.15:
        question = rng.choice(("please ", "can you tell me: ", "hi, ", "ok, ")) + question
    question = question[:1].upper() + question[1:] if rng.random() < 0.5 else question
    return question + ending
