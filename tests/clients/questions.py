"""What the clients ask: the same for all of them, so that their answers can be compared."""

from __future__ import annotations

from typing import Any

QUESTION = "What is a gateway?"
STORY = "Tell me a long story, please."
TOO_LONG = "gateway " * 20_000
# Between the questions stand the model's own words: of others it has not learnt to make sense.
INTRODUCED = [
    {"role": "user", "content": "My name is Ada."},
    {"role": "assistant", "content": "Nice to meet you, Ada! What would you like to know?"},
    {"role": "user", "content": "What is my name?"},
]
WEATHER = "What is the weather in Paris?"
WEATHER_OF_TWO = "What is the weather in Paris and Rome?"
WEATHER_TOLD = "In Paris it is 21 degrees and sunny."  # what is made of WEATHER_RESULT
PERSON = "Answer as JSON with name and age: Ada is 36 years old and lives in Paris."
PERSON_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
    "required": ["name", "age"],
    "additionalProperties": False,
}

WEATHER_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}
# As chat completions and as Responses want it.
WEATHER_FUNCTION: dict[str, Any] = {
    "name": "get_weather",
    "description": "The weather in a city.",
    "parameters": WEATHER_SCHEMA,
}
WEATHER_TOOL: dict[str, Any] = {"type": "function", "function": WEATHER_FUNCTION}
SEARCH_FUNCTION: dict[str, Any] = {
    "name": "search",
    "description": "Searches the web.",
    "parameters": {
        "type": "object",
        "properties": {"query": {"type": "string"}},
        "required": ["query"],
        "additionalProperties": False,
    },
}
SEARCH_TOOL: dict[str, Any] = {"type": "function", "function": SEARCH_FUNCTION}
# A call of it is never short, whatever the model: for what happens half-way.
LONG_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"text": {"type": "string", "minLength": 1000}},
    "required": ["text"],
    "additionalProperties": False,
}
LONG_FUNCTION: dict[str, Any] = {
    "name": "write_story",
    "description": "Writes a long story.",
    "strict": True,
    "parameters": LONG_SCHEMA,
}
LONG_TOOL: dict[str, Any] = {"type": "function", "function": LONG_FUNCTION}
WEATHER_RESULT = '{"temperature": 21, "condition": "sunny"}'


def asking(text: str) -> list[Any]:
    """One user's message."""
    return [{"role": "user", "content": text}]
