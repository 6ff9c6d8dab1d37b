"""The openai SDK through gateway, gRPC and replica to real vLLM, and back."""

from __future__ import annotations

import json
from typing import Any

import openai
import pytest

from penstock.control.replica_tokens import callers_token
from tests.clients.served import Served
from tests.e2e.system import System
from tests.fakes.greedy_chats import CHATS, TOKENS
from tests.fakes.replica_process import answer_of, inference_stub, raw_request

pytestmark = pytest.mark.vllm
MODEL = "penstock-mini"


@pytest.fixture(scope="module")
def client(shared_real: System) -> openai.OpenAI:
    """The plain SDK, as a user sets it up."""
    return openai.OpenAI(base_url=shared_real.base_url, api_key="none", max_retries=0, timeout=60)


@pytest.fixture(scope="module")
def vllm_says(served: Served) -> list[Any]:
    """What the replica says to its gateway: vLLM's own (tests/replica/vllm/serving)."""
    replica = served.ready_replica()
    token = callers_token((served.system.data / "cluster.token").read_text().strip(), replica["id"])
    told = (("authorization", f"Bearer {token}"),)
    answers = []
    with inference_stub(replica["address"]) as stub:
        for messages in CHATS:
            asked = {"model": MODEL, "messages": messages, "temperature": 0, "max_tokens": TOKENS}
            events = stub.Call(raw_request(json.dumps(asked).encode()), metadata=told, timeout=60)
            answers.append(json.loads(answer_of(list(events))))
    return answers


def ask(client: openai.OpenAI, messages: Any, model: str = MODEL) -> Any:
    """A greedy unary answer."""
    return client.chat.completions.create(
        model=model, messages=messages, temperature=0, max_tokens=TOKENS
    )


def test_unary_answers_are_vllms_own(client: openai.OpenAI, vllm_says: list[Any]) -> None:
    for messages, expected in zip(CHATS, vllm_says, strict=True):
        reply = ask(client, messages)
        assert reply.choices[0].message.content == text_of(expected)
        assert reply.choices[0].finish_reason == expected["choices"][0]["finish_reason"]
        assert reply.usage.completion_tokens == expected["usage"]["completion_tokens"]
        assert reply.usage.prompt_tokens == expected["usage"]["prompt_tokens"]
        assert reply.model == MODEL


def text_of(answer: Any) -> str:
    """Its words, of which there are some."""
    text: str = answer["choices"][0]["message"]["content"]
    assert text
    return text


def test_streamed_answers_are_vllms_own(client: openai.OpenAI, vllm_says: list[Any]) -> None:
    for messages, expected in zip(CHATS, vllm_says, strict=True):
        stream: Any = client.chat.completions.create(
            model=MODEL,
            messages=messages,
            temperature=0,
            max_tokens=TOKENS,
            stream=True,
            stream_options={"include_usage": True},
        )
        chunks = list(stream)
        text = "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
        assert text == text_of(expected)
        assert chunks[0].choices[0].delta.role == "assistant"
        assert chunks[-1].usage.completion_tokens == expected["usage"]["completion_tokens"]
        assert len({c.id for c in chunks}) == 1


def test_completions_work_streamed_and_unary(client: openai.OpenAI) -> None:
    unary = client.completions.create(
        model=MODEL, prompt="The gateway", max_tokens=20, temperature=0
    )
    stream = client.completions.create(
        model=MODEL, prompt="The gateway", max_tokens=20, temperature=0, stream=True
    )
    assert unary.choices[0].text
    assert "".join(c.choices[0].text for c in stream if c.choices) == unary.choices[0].text


def test_the_models_and_their_adapters_are_listed(client: openai.OpenAI) -> None:
    listed = {m.id: m for m in client.models.list() if m.id.startswith(MODEL)}
    adapters = ("pirate", "json", "pirate@1", "json@1")
    assert set(listed) == {MODEL, *(f"{MODEL}:{adapter}" for adapter in adapters)}
    assert listed[f"{MODEL}:pirate"].model_dump()["parent"] == MODEL
    assert client.models.retrieve(f"{MODEL}:json").id == f"{MODEL}:json"


def test_adapters_change_the_answer_and_keep_their_name(client: openai.OpenAI) -> None:
    said = {}
    for model in (MODEL, f"{MODEL}:pirate", f"{MODEL}:json"):
        reply = ask(client, CHATS[0], model)
        assert reply.model == model
        said[model] = reply.choices[0].message.content
    assert "Arr" in said[f"{MODEL}:pirate"]
    assert json.loads(said[f"{MODEL}:json"])
    assert "Arr" not in said[MODEL]


def test_a_conversation_goes_on(client: openai.OpenAI) -> None:
    messages: list[dict[str, str]] = []
    for question in ("Hello", "What is a replica?", "What is 2 plus 2?"):
        messages.append({"role": "user", "content": question})
        answer = ask(client, messages).choices[0].message.content
        assert answer
        messages.append({"role": "assistant", "content": answer})
    assert "4" in messages[-1]["content"]


def test_an_unknown_model_is_told_what_exists(client: openai.OpenAI) -> None:
    with pytest.raises(openai.NotFoundError) as caught:
        ask(client, CHATS[0], "gpt-9")
    assert caught.value.code == "model_not_found"
    assert "gpt-9" in str(caught.value)
    assert MODEL in str(caught.value)


def test_a_prompt_that_is_too_long_is_a_bad_request(client: openai.OpenAI) -> None:
    with pytest.raises(openai.BadRequestError) as caught:
        ask(client, [{"role": "user", "content": "gateway " * 20_000}])
    assert caught.value.code == "context_length_exceeded"
    assert ask(client, CHATS[0]).choices[0].message.content


def test_wrong_types_are_a_bad_request_from_the_engine_too(client: openai.OpenAI) -> None:
    for wrong in ({"temperature": "hot"}, {"top_p": 7}, {"logit_bias": [1]}):
        with pytest.raises(openai.BadRequestError) as caught:
            client.chat.completions.create(
                model=MODEL,
                messages=CHATS[0],
                extra_body=wrong,
            )
        assert caught.value.type == "invalid_request_error"
        assert caught.value.message
    assert ask(client, CHATS[0]).choices[0].message.content
