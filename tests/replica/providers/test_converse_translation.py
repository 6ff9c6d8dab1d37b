"""Translation between chat completions and Converse loses nothing that both sides know."""

from __future__ import annotations

import base64
import itertools
import json
from collections.abc import Iterator
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from penstock.replica.providers.account import Account, Prices
from penstock.replica.providers.converse_answers import ConverseStream, whole
from penstock.replica.providers.converse_request import converse_request
from penstock.replica.providers.settings import Allowed
from penstock.replica.providers.values import Ask
from penstock.replica.values import Call
from tests.fakes.provider_calls import CHAT

_TEXT = st.text(min_size=1, max_size=12).filter(str.strip)
_NAME = st.from_regex(r"[a-zA-Z0-9_-]{1,12}", fullmatch=True)
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_NAME, inner, max_size=3),
    max_leaves=6,
)
_OBJECT = st.dictionaries(_NAME, _JSON, max_size=3)
_IMAGE = st.tuples(
    st.sampled_from(["png", "jpeg", "gif", "webp"]), st.binary(min_size=1, max_size=9)
)
_THOUGHT = st.builds(
    lambda text, signature: {"type": "thinking", "thinking": text, "signature": signature},
    _TEXT,
    _NAME,
) | st.builds(
    lambda data: {"type": "redacted_thinking", "data": base64.b64encode(data).decode()},
    st.binary(min_size=1, max_size=9),
)
_IDS = itertools.count()


@st.composite
def _parts(draw: st.DrawFn) -> list[dict[str, Any]]:
    parts: list[dict[str, Any]] = []
    for one in draw(st.lists(_TEXT | _IMAGE, min_size=1, max_size=3)):
        if isinstance(one, str):
            parts.append({"type": "text", "text": one})
        else:
            url = f"data:image/{one[0]};base64,{base64.b64encode(one[1]).decode()}"
            parts.append({"type": "image_url", "image_url": {"url": url}})
    return parts


@st.composite
def _turn(draw: st.DrawFn) -> list[dict[str, Any]]:
    """A user's message and what answers it, calls of tools with their results among it."""
    turn: list[dict[str, Any]] = []
    if draw(st.booleans()):
        turn.append(
            {"role": draw(st.sampled_from(["system", "developer"])), "content": draw(_TEXT)}
        )
    turn.append({"role": "user", "content": draw(_TEXT | _parts())})
    calls = [
        {
            "id": f"call_{next(_IDS)}",
            "type": "function",
            "function": {"name": draw(_NAME), "arguments": json.dumps(draw(_OBJECT))},
        }
        for _ in range(draw(st.integers(0, 2)))
    ]
    answer: dict[str, Any] = {"role": "assistant", "content": draw(st.none() | _TEXT)}
    if thoughts := draw(st.lists(_THOUGHT, max_size=2)):
        answer["thinking_blocks"] = thoughts
    if calls:
        answer["tool_calls"] = calls
    turn.append(answer)
    turn += [
        {"role": "tool", "tool_call_id": call["id"], "content": draw(_TEXT | _parts())}
        for call in calls
    ]
    return turn


_CONVERSATION = st.lists(_turn(), min_size=1, max_size=4).map(
    lambda turns: [message for turn in turns for message in turn]
)


def _ask(**body: Any) -> Ask:
    return Ask(Call("r", CHAT, b"", "m"), body, 1)


def _facts_of_content(content: Any) -> Iterator[tuple[Any, ...]]:
    if isinstance(content, str):
        yield "text", content
    for part in content if isinstance(content, list) else ():
        if part["type"] == "text":
            yield "text", part["text"]
        else:
            head, data = part["image_url"]["url"].split(";base64,")
            yield "image", head.removeprefix("data:image/"), base64.b64decode(data)


def _facts(messages: list[dict[str, Any]]) -> Iterator[tuple[Any, ...]]:
    """Everything that a chat's messages say, in order, system messages first."""
    system = [one for one in messages if one["role"] in ("system", "developer")]
    for one in system:
        yield from (("system", *fact) for fact in _facts_of_content(one["content"]))
    for one in messages:
        if one in system:
            continue
        if one["role"] == "tool":
            yield "result", one["tool_call_id"], *_facts_of_content(one["content"])
            continue
        yield from ((one["role"], "thought", thought) for thought in one.get("thinking_blocks", ()))
        yield from ((one["role"], *fact) for fact in _facts_of_content(one["content"]))
        for call in one.get("tool_calls", ()):
            function = call["function"]
            arguments = json.loads(function["arguments"])
            yield "assistant", "call", call["id"], function["name"], arguments


def _facts_of_block(block: dict[str, Any]) -> Iterator[tuple[Any, ...]]:
    if "text" in block:
        yield "text", block["text"]
    elif "image" in block:
        yield "image", block["image"]["format"], block["image"]["source"]["bytes"]
    elif "toolUse" in block:
        use = block["toolUse"]
        yield "call", use["toolUseId"], use["name"], use["input"]
    elif "redactedContent" in block["reasoningContent"]:
        data = base64.b64encode(block["reasoningContent"]["redactedContent"]).decode()
        yield "thought", {"type": "redacted_thinking", "data": data}
    else:
        said = block["reasoningContent"]["reasoningText"]
        thought = {"type": "thinking", "thinking": said["text"], "signature": said["signature"]}
        yield "thought", thought


def _facts_of_request(request: dict[str, Any]) -> Iterator[tuple[Any, ...]]:
    for block in request.get("system", ()):
        yield from (("system", *fact) for fact in _facts_of_block(block))
    for message in request["messages"]:
        for block in message["content"]:
            if "toolResult" in block:
                result = block["toolResult"]
                said = [fact for part in result["content"] for fact in _facts_of_block(part)]
                yield "result", result["toolUseId"], *said
            else:
                yield from ((message["role"], *fact) for fact in _facts_of_block(block))


@given(_CONVERSATION)
def test_all_that_a_conversation_says_is_in_the_request(messages: list[dict[str, Any]]) -> None:
    request = converse_request(_ask(messages=messages), "model", ("", ""), Allowed())
    assert list(_facts_of_request(request)) == list(_facts(messages))


@given(_CONVERSATION)
def test_speakers_take_turns_and_tools_that_were_called_are_named(
    messages: list[dict[str, Any]],
) -> None:
    request = converse_request(_ask(messages=messages), "model", ("", ""), Allowed())
    roles = [message["role"] for message in request["messages"]]
    assert all(one != other for one, other in itertools.pairwise(roles))
    called = {fact[3] for fact in _facts(messages) if fact[1] == "call"}
    tools = request.get("toolConfig", {"tools": []})["tools"]
    assert {tool["toolSpec"]["name"] for tool in tools} == called


_BLOCKS = st.lists(
    _TEXT.map(lambda text: {"text": text})
    | st.builds(
        lambda name, given: {
            "toolUse": {"toolUseId": f"c{next(_IDS)}", "name": name, "input": given}
        },
        _NAME,
        _OBJECT,
    )
    | st.builds(
        lambda text, signature: {
            "reasoningContent": {"reasoningText": {"text": text, "signature": signature}}
        },
        _TEXT,
        _NAME,
    ),
    min_size=1,
    max_size=5,
)


def _cut(text: str, at: int) -> list[str]:
    return [part for part in (text[: at % (len(text) + 1)], text[at % (len(text) + 1) :]) if part]


def _events(blocks: list[dict[str, Any]], at: int, reason: str) -> Iterator[dict[str, Any]]:
    """What Bedrock streams for these blocks, texts in two parts."""
    yield {"messageStart": {"role": "assistant"}}
    for index, block in enumerate(blocks):
        deltas: list[dict[str, Any]]
        if "text" in block:
            deltas = [{"text": part} for part in _cut(block["text"], at)]
        elif "toolUse" in block:
            use = block["toolUse"]
            start = {"toolUse": {"toolUseId": use["toolUseId"], "name": use["name"]}}
            yield {"contentBlockStart": {"contentBlockIndex": index, "start": start}}
            text = json.dumps(use["input"]) if use["input"] else ""
            deltas = [{"toolUse": {"input": part}} for part in _cut(text, at)]
        else:
            said = block["reasoningContent"]["reasoningText"]
            deltas = [{"reasoningContent": {"text": part}} for part in _cut(said["text"], at)]
            deltas.append({"reasoningContent": {"signature": said["signature"]}})
        for delta in deltas:
            yield {"contentBlockDelta": {"contentBlockIndex": index, "delta": delta}}
        yield {"contentBlockStop": {"contentBlockIndex": index}}
    yield {"messageStop": {"stopReason": reason}}
    yield {"metadata": {"usage": {"inputTokens": 3, "outputTokens": 4}}}


def _put_together(deltas: Iterator[dict[str, Any]]) -> dict[str, Any]:
    """The message that a client makes of a stream's deltas."""
    message: dict[str, Any] = {"role": "", "content": "", "reasoning_content": "", "thoughts": []}
    calls: dict[int, dict[str, Any]] = {}
    for delta in deltas:
        message["role"] = delta.get("role") or message["role"]
        for field in ("content", "reasoning_content"):
            message[field] += delta.get(field) or ""
        message["thoughts"] += delta.get("thinking_blocks", [])
        for part in delta.get("tool_calls", ()):
            call = calls.setdefault(part["index"], {"arguments": ""})
            call["arguments"] += part["function"]["arguments"]
            if "id" in part:
                call |= {"id": part["id"], "name": part["function"]["name"]}
    message["calls"] = [calls[index] for index in sorted(calls)]
    return message


def _streamed(blocks: list[dict[str, Any]], at: int) -> dict[str, Any]:
    account = Account(Prices(), 0)
    reading = ConverseStream(_ask(stream=True), account)
    bodies = [
        piece.body for event in _events(blocks, at, "tool_use") for piece in reading.take(event)
    ]
    assert [piece.body for piece in reading.end()] == [b"data: [DONE]\n\n"]
    assert account.usage().prompt_tokens == 3
    chunks = [json.loads(body.removeprefix(b"data: ")) for body in bodies]
    assert chunks[-1]["choices"][0]["finish_reason"] == "tool_calls"
    return _put_together(chunk["choices"][0]["delta"] for chunk in chunks)


def _at_once(blocks: list[dict[str, Any]]) -> dict[str, Any]:
    usage = {"inputTokens": 3, "outputTokens": 4}
    reply = {"output": {"message": {"content": blocks}}, "stopReason": "tool_use", "usage": usage}
    body = json.loads(whole(_ask(), Account(Prices(), 0), reply).body)
    message: dict[str, Any] = body["choices"][0]["message"]
    return message


@given(_BLOCKS, st.integers(0, 20))
def test_an_answer_says_the_same_streamed_and_at_once(
    blocks: list[dict[str, Any]], at: int
) -> None:
    streamed, unary = _streamed(blocks, at), _at_once(blocks)
    assert streamed["role"] == unary["role"] == "assistant"
    assert streamed["content"] == (unary["content"] or "")
    assert streamed["reasoning_content"] == unary.get("reasoning_content", "")
    assert streamed["thoughts"] == unary.get("thinking_blocks", [])
    assert [
        (call["id"], call["name"], json.loads(call["arguments"])) for call in streamed["calls"]
    ] == [
        (call["id"], call["function"]["name"], json.loads(call["function"]["arguments"]))
        for call in unary.get("tool_calls", ())
    ]


@given(_BLOCKS)
def test_an_answer_that_is_given_back_says_what_it_said(blocks: list[dict[str, Any]]) -> None:
    question = {"role": "user", "content": "?"}
    request = converse_request(
        _ask(messages=[question, _at_once(blocks)]), "model", ("", ""), Allowed()
    )
    back = [fact for block in request["messages"][1]["content"] for fact in _facts_of_block(block)]
    said = [fact for block in blocks for fact in _facts_of_block(block)]
    for kind in ("call", "thought"):
        assert [one for one in back if one[0] == kind] == [one for one in said if one[0] == kind]
    texts = ["".join(one[1] for one in facts if one[0] == "text") for facts in (back, said)]
    assert texts[0] == texts[1]
