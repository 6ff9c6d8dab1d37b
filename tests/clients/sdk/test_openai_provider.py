"""A deployment that a provider answers for: the openai SDK sees no difference but the metadata.

The provider is the system's own gateway, so both have the same model behind them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import openai
import pytest

from tests.clients.questions import (
    INTRODUCED,
    PERSON,
    PERSON_SCHEMA,
    QUESTION,
    WEATHER,
    WEATHER_OF_TWO,
    WEATHER_TOOL,
    asking,
)
from tests.clients.served import CLOUD, CLOUD_EMBEDDER, EMBEDDER, MODEL, Served

pytestmark = pytest.mark.vllm

_OWN = ("id", "created", "model", "system_fingerprint")
_SCHEMA = {"name": "person", "schema": PERSON_SCHEMA, "strict": True}
_TOOLS: dict[str, Any] = {"tools": [WEATHER_TOOL]}
ASKED: dict[str, dict[str, Any]] = {
    "a question": {"messages": asking(QUESTION)},
    "a conversation": {"messages": INTRODUCED},
    "a stop": {"messages": asking(QUESTION), "stop": ["and"]},
    "a limit": {"messages": asking(QUESTION), "max_tokens": 3},
    "logprobs": {"messages": asking(QUESTION), "logprobs": True, "top_logprobs": 2},
    "a tool that fits": {"messages": asking(WEATHER), **_TOOLS},
    "two calls": {"messages": asking(WEATHER_OF_TWO), **_TOOLS},
    "a demanded tool": {"messages": asking(QUESTION), **_TOOLS, "tool_choice": "required"},
    "a schema": {
        "messages": asking(PERSON),
        "response_format": {"type": "json_schema", "json_schema": _SCHEMA},
    },
}


@pytest.fixture(scope="module", autouse=True)
def _cloud(served: Served) -> Iterator[None]:
    with served.by_way_of_a_provider():
        yield


def _told(answer: Any) -> dict[str, Any]:
    """All that an answer, or a chunk, says but whose it is."""
    said: dict[str, Any] = answer.model_dump(exclude=set(_OWN))
    for choice in said["choices"]:
        for call in (choice.get("message") or choice.get("delta") or {}).get("tool_calls") or []:
            call.pop("id")
    return said


def _joined(chunks: list[Any]) -> tuple[str, list[tuple[str, str]], list[str], Any]:
    """What a stream says: its text, its calls, why its choices end, what it cost."""
    text, calls, reasons = "", [], []
    for chunk in chunks:
        assert chunk.object == "chat.completion.chunk"
        for choice in chunk.choices:
            text += choice.delta.content or ""
            for call in choice.delta.tool_calls or []:
                if call.function.name:
                    calls.append((call.function.name, ""))
                name, arguments = calls[-1]
                calls[-1] = (name, arguments + (call.function.arguments or ""))
            if choice.finish_reason:
                reasons.append(choice.finish_reason)
    usage = chunks[-1].usage
    return text, calls, reasons, usage.model_dump() if usage else None


@pytest.mark.parametrize("asked", ASKED)
def test_an_answer_is_the_same_by_way_of_a_provider(client: Any, asked: str) -> None:
    create = client.chat.completions.with_raw_response.create
    direct, raw = (create(model=m, temperature=0, **ASKED[asked]) for m in (MODEL, CLOUD))
    assert _told(raw.parse()) == _told(direct.parse())
    assert raw.parse().model == CLOUD
    assert raw.headers["x-penstock-backend"] == CLOUD
    assert raw.headers["x-penstock-backend-version"].startswith(f"{MODEL}@")


@pytest.mark.parametrize("asked", [name for name in ASKED if name != "logprobs"])
@pytest.mark.parametrize("usage", [False, True])
def test_a_stream_is_the_same_by_way_of_a_provider(client: Any, asked: str, usage: bool) -> None:
    more = {"stream_options": {"include_usage": True}} if usage else {}
    direct, other = (
        list(
            client.chat.completions.create(
                model=model, temperature=0, stream=True, **more, **ASKED[asked]
            )
        )
        for model in (MODEL, CLOUD)
    )
    assert _joined(other) == _joined(direct)
    assert {chunk.model for chunk in other} == {CLOUD}
    assert bool(other[-1].usage) == usage


def test_a_tools_result_goes_both_ways(client: Any) -> None:
    answers = []
    for model in (MODEL, CLOUD):
        ask = {"model": model, "temperature": 0, **_TOOLS}
        called = client.chat.completions.create(messages=asking(WEATHER), **ask).choices[0].message
        (call,) = called.tool_calls
        result = {"role": "tool", "tool_call_id": call.id, "content": '{"degrees": 21}'}
        messages = [*asking(WEATHER), called.model_dump(exclude_none=True), result]
        answers.append(client.chat.completions.create(messages=messages, **ask))
    assert _told(answers[1]) == _told(answers[0])


def test_embeddings_are_the_same(client: Any) -> None:
    direct, other = (
        client.embeddings.create(model=model, input=["a gateway", "a replica"])
        for model in (EMBEDDER, CLOUD_EMBEDDER)
    )
    assert [each.embedding for each in other.data] == [each.embedding for each in direct.data]
    assert other.usage == direct.usage


@pytest.mark.parametrize(
    "wrong", [{"temperature": 9}, {"messages": asking("gateway " * 20_000)}, {"max_tokens": -1}]
)
def test_a_clients_fault_is_the_clients_by_way_of_a_provider(
    client: Any, wrong: dict[str, Any]
) -> None:
    errors = []
    for model in (MODEL, CLOUD):
        with pytest.raises(openai.BadRequestError) as caught:
            client.chat.completions.create(
                **{"model": model, "messages": asking(QUESTION), **wrong}
            )
        errors.append((caught.value.status_code, caught.value.code, caught.value.param))
    assert errors[0] == errors[1]
