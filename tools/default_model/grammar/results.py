"""Results of tools, each with the sentence that the model is to make of it."""

from __future__ import annotations

from random import Random
from typing import Any, Final

from tools.default_model.grammar.dialogues import dumped
from tools.default_model.grammar.words import (
    argument,
    half,
    listed,
    number,
    phrase,
    syllables,
)

UNITS: Final = ("celsius", "fahrenheit")
_FAILURES: Final = ("not found", "timeout", "unknown city", "no access", "try again later")
_SKIES: Final = listed("sunny cloudy rainy windy snowy foggy clear stormy overcast")


def weather(rng: Random, where: str) -> tuple[str, str]:
    """The weather there, as one of many services tells it."""
    warm, sky = rng.randrange(-15, 100), rng.choice(_SKIES)
    kind = rng.random()
    if kind < 0.06:
        return _failure(rng)
    if kind < 0.3:
        text = rng.choice(
            (f"{warm} degrees", f"{warm} degrees, {sky}", f"{sky}, {warm} C", sky, f"{warm} C")
        )
        return text, f"In {where}: {text}."
    facts: dict[str, Any] = {}
    said = []
    if kind < 0.92:
        facts[rng.choice(listed("temperature temperature temp temperature_c"))] = warm
        said.append(f"{warm} degrees")
    if kind > 0.45:
        facts[rng.choice(listed("condition condition conditions description sky"))] = sky
        said.append(sky)
    extras = {"unit": rng.choice(UNITS), "humidity": rng.randrange(20, 100), "city": where}
    for name in rng.sample(list(extras), rng.choice((0, 0, 1, 1, 2))):
        facts[name] = extras[name]
    return _shuffled(rng, facts), f"In {where} it is {' and '.join(said)}."


def hits(rng: Random) -> tuple[str, str]:
    """What a search found."""
    kind = rng.random()
    if kind < 0.06:
        return _failure(rng)
    if kind < 0.12:
        return rng.choice(("[]", "no results", dumped({"results": []}))), "I found nothing."
    titles = [phrase(rng) for _ in range(rng.choice((1, 1, 2)))]
    said = f"I found: {' and '.join(titles)}."
    if kind < 0.35:
        return titles[0], f"I found: {titles[0]}."
    rows: list[Any] = list(titles)
    if kind < 0.8:
        rows = [{"title": title} | _address(rng) for title in titles]
    return dumped({"results": rows} if half(rng) else rows, _separators(rng)), said


def _address(rng: Random) -> dict[str, Any]:
    return {"url": f"https://{syllables(rng)}.com"} if rng.random() < 0.4 else {}


def reckoned(rng: Random) -> tuple[str, str]:
    """The result of a sum; any number, since it is to be repeated and not checked."""
    got = number(rng)
    result = rng.choice((str(got), dumped({rng.choice(listed("result value answer")): got})))
    return result, f"The result is {got}."


def anything(rng: Random) -> tuple[str, str]:
    """What a tool for anything may give back."""
    kind = rng.random()
    if kind < 0.1:
        return _failure(rng)
    if kind < 0.35:
        done = rng.choice(("ok", "done", dumped({"ok": True}), dumped({"status": "ok"}), "true"))
        return done, "Done."
    if kind < 0.5:
        text = phrase(rng)
        return text, f"The tool says: {text}."
    facts: dict[str, Any] = {argument(rng): _word_or_number(rng)}
    if half(rng):
        facts[argument(rng)] = number(rng)
    said = " and ".join(f"the {name} is {value}" for name, value in facts.items())
    return dumped(facts, _separators(rng)), f"{said[:1].upper()}{said[1:]}."


def _word_or_number(rng: Random) -> str | int:
    return phrase(rng, 2) if rng.choice((True, False)) else number(rng)


def _failure(rng: Random) -> tuple[str, str]:
    """A tool that could not."""
    why = rng.choice(_FAILURES)
    return rng.choice((dumped({"error": why}), f"Error: {why}")), f"The tool failed: {why}."


def _shuffled(rng: Random, facts: dict[str, Any]) -> str:
    names = rng.sample(list(facts), len(facts))
    return dumped({name: facts[name] for name in names}, _separators(rng))


def _separators(rng: Random) -> tuple[str, str]:
    """Python's way to write JSON, or that of everybody else."""
    return (", ", ": ") if rng.random() < 0.6 else (",", ":")
