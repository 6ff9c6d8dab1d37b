"""What tools are for: weather, sums, search, time, and anything with a name and arguments.

Each domain makes a tool of its kind under one of many names, and tasks for it: words that ask, and
the call that fits, with a result and the sentence to make of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any, Final

from tools.default_model.grammar import results
from tools.default_model.grammar.dialogues import Call, Field, Tool, dumped, in_words
from tools.default_model.grammar.words import (
    argument,
    half,
    listed,
    number,
    phrase,
    place,
    syllables,
)


@dataclass(frozen=True, slots=True)
class Task:
    """Words that ask for something, and the calls that do it."""

    question: str
    calls: tuple[Call, ...]


@dataclass(frozen=True, slots=True)
class Domain:
    """How to make a tool, and tasks for a tool that was made so."""

    tool: Callable[[Random], Tool]
    task: Callable[[Random, Tool], Task]


_PLACE_ARGUMENTS: Final = listed("city city location location place town")
_WEATHER_NAMES: Final = listed(
    "get_weather get_weather get_current_weather weather current_weather get_forecast "
    "weather_forecast fetch_weather getWeather lookup_weather"
)
_WEATHER_ASKED: Final = (
    "what is the weather in {}",
    "what is the weather like in {}",
    "what's the weather like in {}",
    "what's the weather in {}",
    "how is the weather in {}",
    "weather in {}",
    "tell me the weather in {}",
    "what is the temperature in {}",
    "how warm is it in {}",
    "how cold is it in {}",
    "is it raining in {}",
    "will it rain in {}",
    "get the weather for {}",
    "i need the weather for {}",
)


def _weather_tool(rng: Random) -> Tool:
    fields = [Field(rng.choice(_PLACE_ARGUMENTS))]
    if rng.random() < 0.4:
        fields.append(
            Field(rng.choice(("unit", "unit", "units")), "string", half(rng), results.UNITS)
        )
    elif rng.random() < 0.1:
        fields.append(Field("days", "integer", required=False))
    return Tool(rng.choice(_WEATHER_NAMES), tuple(fields))


def _weather(rng: Random, tool: Tool) -> Task:
    several = rng.choice((1, 1, 1, 1, 2, 2, 3))
    places = [place(rng) for _ in range(several)]
    unit = rng.choice(results.UNITS) if rng.random() < 0.25 else ""
    joined = places[0]
    if several > 1:
        also = rng.choice((" and ", " and ", " and in "))
        joined = ", ".join(places[:-1]) + also + places[-1]
    when = rng.choice(("", "", "", " today", " tomorrow", " now", " right now"))
    question = rng.choice(_WEATHER_ASKED).format(joined) + (f" in {unit}" if unit else when)
    calls = tuple(_weather_call(rng, tool, where, unit) for where in places)
    return Task(question, calls)


def _weather_call(rng: Random, tool: Tool, where: str, unit: str) -> Call:
    arguments: dict[str, Any] = {tool.fields[0].name: where}
    for one in tool.fields[1:]:
        if one.options and (unit or one.required):
            arguments[one.name] = unit or results.UNITS[0]
    return Call(tool.name, arguments, *results.weather(rng, where))


_TIME_NAMES: Final = listed("get_time current_time get_current_time time_in get_local_time clock")
_TIME_ASKED: Final = (
    "what time is it in {}",
    "what is the time in {}",
    "tell me the time in {}",
    "current time in {}",
    "how late is it in {}",
)


def _time_tool(rng: Random) -> Tool:
    if rng.random() < 0.2:
        return Tool(rng.choice(_TIME_NAMES), ())
    return Tool(rng.choice(_TIME_NAMES), (Field(rng.choice((*_PLACE_ARGUMENTS, "timezone"))),))


def _time(rng: Random, tool: Tool) -> Task:
    where = place(rng)
    clock = f"{rng.randrange(24)}:{rng.randrange(10, 60)}"
    result = rng.choice((clock, dumped({"time": clock}), dumped({"time": clock, "day": "Monday"})))
    if not tool.fields:
        asked = rng.choice(("what time is it", "what is the time", "tell me the time"))
        return Task(asked, (Call(tool.name, {}, result, f"It is {clock}."),))
    call = Call(tool.name, {tool.fields[0].name: where}, result, f"In {where} it is {clock}.")
    return Task(rng.choice(_TIME_ASKED).format(where), (call,))


_SEARCH_NAMES: Final = listed("search search web_search search_web lookup find google_search")
_SEARCH_ASKED: Final = (
    "search for {}",
    "search for {}",
    "search the web for {}",
    "look up {}",
    "find {}",
    "google {}",
    "find information about {}",
    "search {}",
    "please search for {}",
)


def _search_tool(rng: Random) -> Tool:
    fields = [Field(rng.choice(listed("query query q text term")))]
    if rng.random() < 0.25:
        name = rng.choice(listed("limit count max_results"))
        fields.append(Field(name, "integer", required=False))
    return Tool(rng.choice(_SEARCH_NAMES), tuple(fields))


def _search(rng: Random, tool: Tool) -> Task:
    wanted = phrase(rng)
    call = Call(tool.name, {tool.fields[0].name: wanted}, *results.hits(rng))
    return Task(rng.choice(_SEARCH_ASKED).format(wanted), (call,))


_OPERATIONS: Final = {  # operation: (sign, how it is asked)
    "add": ("+", ("what is {} plus {}", "add {} and {}", "{} + {}", "what is {} + {}")),
    "subtract": ("-", ("what is {} minus {}", "{} - {}", "what is {} - {}")),
    "multiply": ("*", ("what is {} times {}", "multiply {} by {}", "{} * {}", "what is {} * {}")),
    "divide": ("/", ("what is {} divided by {}", "divide {} by {}", "{} / {}", "what is {} / {}")),
}
_FORMULAS: Final = (
    "{} + {} + {}",
    "{} * {} + {}",
    "({} + {}) * {}",
    "{} - {} / {}",
    "{}+{}",
    "{}*{}",
    "{}+{}*{}",
    "({} - {}) / {}",
)
_ASKED_FIRST: Final = ("", "", "", "calculate: ", "compute ", "use the calculator: ")


def _calculator_tool(rng: Random) -> Tool:
    kind = rng.random()
    a, b = rng.choice((("a", "b"), ("a", "b"), ("x", "y"), ("first", "second")))
    numbers = tuple(Field(name, rng.choice(("number", "integer"))) for name in (a, b))
    if kind < 0.6:
        field = Field(rng.choice(listed("expression expression expr formula input")))
        return Tool(rng.choice(listed("calculate calculator compute evaluate math")), (field,))
    if kind < 0.75:
        operation = Field("operation", options=tuple(_OPERATIONS))
        return Tool(rng.choice(("calculate", "calculator")), (operation, *numbers))
    return Tool(rng.choice(tuple(_OPERATIONS)), numbers)


def _calculate(rng: Random, tool: Tool) -> Task:
    operation = tool.name if tool.name in _OPERATIONS else rng.choice(tuple(_OPERATIONS))
    sign, forms = _OPERATIONS[operation]
    a, b = number(rng), number(rng)
    if len(tool.fields) == 1 and rng.random() < 0.25:
        return _evaluate(rng, tool, rng.choice(_FORMULAS).format(a, b, number(rng)))
    arguments: dict[str, Any] = {tool.fields[0].name: f"{a} {sign} {b}"}
    if len(tool.fields) > 1:
        values = (operation, a, b) if len(tool.fields) == 3 else (a, b)
        arguments = {one.name: value for one, value in zip(tool.fields, values, strict=True)}
    call = Call(tool.name, arguments, *results.reckoned(rng))
    return Task(rng.choice(_ASKED_FIRST) + rng.choice(forms).format(a, b), (call,))


def _evaluate(rng: Random, tool: Tool, formula: str) -> Task:
    """A formula that goes into the call as it was written."""
    asked = rng.choice(("calculate ", "compute ", "what is ", "evaluate ", "")) + formula
    return Task(asked, (Call(tool.name, {tool.fields[0].name: formula}, *results.reckoned(rng)),))


_VERBS: Final = listed("send create set get delete update open add book play run check make")
_NOUNS: Final = listed("message event timer user order file task ticket note song room page item")
_USED: Final = ("call {} with {}", "use {} with {}", "run {} with {}", "please call {} with {}")


def _any_tool(rng: Random) -> Tool:
    name = f"{rng.choice(_VERBS)}_{rng.choice(_NOUNS)}"
    if rng.random() < 0.4:
        name = syllables(rng) if half(rng) else f"{syllables(rng)}_{syllables(rng)}"
    names = {argument(rng) for _ in range(rng.choice((1, 1, 2, 2, 3)))}
    return Tool(name, tuple(_any_field(rng, one) for one in sorted(names)))


def _any_field(rng: Random, name: str) -> Field:
    kind = rng.choice(("string", "string", "string", "integer", "number", "boolean", "enum"))
    if kind == "enum":
        return Field(name, options=tuple(syllables(rng, 2) for _ in range(rng.choice((2, 3)))))
    return Field(name, kind, required=rng.random() < 0.85)


def _any_value(rng: Random, one: Field) -> Any:
    """A value for a field."""
    if one.options:
        return rng.choice(one.options)
    if one.kind == "boolean":
        return half(rng)
    return phrase(rng, 2) if one.kind == "string" else number(rng)


def _anything(rng: Random, tool: Tool) -> Task:
    given = {one.name: _any_value(rng, one) for one in tool.fields if one.required or half(rng)}
    if not given:
        return Task(f"call {tool.name}", (Call(tool.name, {}, *results.anything(rng)),))
    link = rng.choice((" ", " ", " = ", ": ", " set to "))
    words = [f"{name}{link}{in_words(value)}" for name, value in given.items()]
    asked = rng.choice(_USED).format(tool.name, " and ".join(words))
    return Task(asked, (Call(tool.name, given, *results.anything(rng)),))


DOMAINS: Final = {
    "weather": Domain(_weather_tool, _weather),
    "calculator": Domain(_calculator_tool, _calculate),
    "search": Domain(_search_tool, _search),
    "time": Domain(_time_tool, _time),
    "anything": Domain(_any_tool, _anything),
}
"""The domains by their names."""
