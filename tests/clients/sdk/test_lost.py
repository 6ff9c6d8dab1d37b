"""A replica is killed while it streams: no SDK sees more than a pause, and where answers do not go
on each tells its caller in-band, in its own way."""

from __future__ import annotations

from typing import Any

import openai
import pytest

from tests.clients.questions import STORY, asking
from tests.clients.served import MODEL, Served
from tests.fakes.lazily import anthropic

pytestmark = pytest.mark.vllm


def test_a_lost_stream_is_an_error_and_never_a_whole_answer(
    served: Served, client: Any, claude: Any
) -> None:
    with served.told_of_losses():
        told(served, client, claude)


def told(served: Served, client: Any, claude: Any) -> None:
    replica = served.ready_replica()
    endless: Any = {"ignore_eos": True}
    chat: Any = client.chat.completions.create(
        model=MODEL,
        messages=asking(STORY),
        stream=True,
        max_tokens=1900,
        extra_body=endless,
    )
    response: Any = client.responses.create(
        model=MODEL, input=STORY, stream=True, max_output_tokens=1900, extra_body=endless
    )
    message = claude.messages.create(
        model=MODEL, max_tokens=1900, messages=asking(STORY), stream=True
    )
    for stream in (chat, response, message):
        next(iter(stream))
    served.system.kill(replica["pid"])

    _, chat_lost = rest(chat)
    events, _ = rest(response)
    _, message_lost = rest(message)
    served.wait_until_it_answers()

    assert isinstance(chat_lost, openai.APIError)
    assert not isinstance(chat_lost, openai.APIConnectionError)
    assert (chat_lost.type, chat_lost.code) == ("server_error", "upstream_error")

    assert events[-1].type == "response.failed"
    assert events[-1].response.status == "failed"
    assert events[-1].response.error.message
    assert events[-1].response.output[0].content[0].text

    assert isinstance(message_lost, anthropic.APIStatusError)
    body: Any = message_lost.body
    assert (body["type"], body["error"]["type"]) == ("error", "api_error")


def rest(stream: Any) -> tuple[list[Any], Exception | None]:
    """What still comes of a stream, and what it ends with.

    Older SDKs read on behind `response.failed`, and let through what httpx says of a body that ends
    without its last chunk.
    """
    parts = []
    try:
        for part in stream:
            parts.append(part)
    except Exception as error:
        return parts, error
    return parts, None


LONG = 500  # tokens


def streams(client: Any, claude: Any) -> tuple[Any, Any, Any]:
    """The same answer by each of the APIs."""
    endless: Any = {"ignore_eos": True, "temperature": 0}
    chat = client.chat.completions.create(
        model=MODEL,
        messages=asking(STORY),
        stream=True,
        max_tokens=LONG,
        stream_options={"include_usage": True},
        extra_body=endless,
    )
    response = client.responses.create(
        model=MODEL, input=STORY, stream=True, max_output_tokens=LONG, extra_body=endless
    )
    message = claude.messages.create(
        model=MODEL,
        max_tokens=LONG,
        messages=asking(STORY),
        stream=True,
        extra_body=endless,
    )
    return chat, response, message


def of_chat(parts: list[Any]) -> object:
    """All that a caller makes of the chunks; they are of one answer, that began once."""
    assert len({(part.id, part.created) for part in parts}) == 1
    choices = [choice for part in parts for choice in part.choices]
    assert [choice.delta.role for choice in choices].count("assistant") == 1
    text = "".join(choice.delta.content or "" for choice in choices)
    return text, [one.finish_reason for one in choices if one.finish_reason], parts[-1].usage


def of_response(events: list[Any]) -> object:
    """Likewise of the events; none of them stands twice."""
    assert [event.sequence_number for event in events] == list(range(len(events)))
    last = events[-1].response
    text = "".join(event.delta for event in events if event.type == "response.output_text.delta")
    assert text == last.output[0].content[0].text
    assert last.id == events[0].response.id
    return text, last.status, last.usage


def of_message(events: list[Any]) -> object:
    """Likewise."""
    kinds = [event.type for event in events]
    assert kinds.count("message_start") == kinds.count("message_stop") == 1
    deltas = [event.delta for event in events if event.type == "content_block_delta"]
    (end,) = [event for event in events if event.type == "message_delta"]
    return "".join(delta.text for delta in deltas), end.delta.stop_reason, end.usage


def test_a_stream_over_a_kill_is_what_it_would_have_been(
    served: Served, client: Any, claude: Any
) -> None:
    readers = (of_chat, of_response, of_message)
    undisturbed = [of(list(one)) for of, one in zip(readers, streams(client, claude), strict=True)]
    with served.waiting_for_the_next():
        replica = served.ready_replica()
        read = [(one, [next(iter(one))]) for one in streams(client, claude)]
        served.system.kill(replica["pid"])
        seen = [first + list(one) for one, first in read]
    assert [of(parts) for of, parts in zip(readers, seen, strict=True)] == undisturbed
    assert served.ready_replica()["pid"] != replica["pid"]
