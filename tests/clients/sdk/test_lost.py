"""A replica is killed while it streams: each SDK tells its caller in-band, in its own way."""

from __future__ import annotations

from typing import Any

import openai
import pytest

from tests.clients.questions import STORY, asking
from tests.clients.sdk.lazily import anthropic
from tests.clients.served import MODEL, Served

pytestmark = pytest.mark.vllm


def test_a_lost_stream_is_an_error_and_never_a_whole_answer(
    served: Served, client: Any, claude: Any
) -> None:
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
