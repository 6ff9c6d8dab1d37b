"""What the clients ask: the same for all of them, so that their answers can be compared."""

from __future__ import annotations

from typing import Any

QUESTION = "What is a gateway?"
STORY = "Tell me a long story, please."
TOO_LONG = "gateway " * 20_000
WEATHER = "What is the weather in Paris?"

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
WEATHER_RESULT = '{"temperature": 21, "condition": "sunny"}'


def asking(text: str) -> list[Any]:
    """One user's message."""
    return [{"role": "user", "content": text}]
