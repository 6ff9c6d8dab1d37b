"""A replica is killed while it streams: no library sees more than a pause, and where answers do not
go on each tells its caller, and none calls it whole."""

from __future__ import annotations

from typing import Any

import openai
import pytest
from pydantic import BaseModel

from tests.clients.frameworks.test_langchain import chat_model
from tests.clients.questions import STORY, asking
from tests.clients.served import MODEL, Served

litellm = pytest.importorskip("litellm", reason="litellm does not run on this Python")
instructor = pytest.importorskip("instructor")
# The libraries warn of each other: not our concern here.
pytestmark = [pytest.mark.vllm, pytest.mark.filterwarnings("ignore")]

ENDLESS: Any = {"ignore_eos": True}


class Text(BaseModel):
    """An object that is as long as its text."""

    text: str


def streams(served: Served, tokens: int) -> tuple[Any, Any, Any]:
    """The same answer by LangChain, over both of its ways, and by litellm."""
    chat = chat_model(served, responses=False, max_tokens=tokens, extra_body=ENDLESS)
    responses = chat_model(served, responses=True, max_tokens=tokens, extra_body=ENDLESS)
    lite = litellm.completion(
        model=f"openai/{MODEL}",
        messages=asking(STORY),
        stream=True,
        max_tokens=tokens,
        temperature=0,
        extra_body=ENDLESS,
        api_base=served.base_url,
        api_key="none",
        max_retries=0,
    )
    return chat.stream(STORY), responses.stream(STORY), lite


def test_a_lost_stream_is_an_error_and_never_a_whole_answer(served: Served) -> None:
    with served.told_of_losses():
        langchain, responses, lite = streams(served, 1900)
        replica = served.ready_replica()
        for stream in (langchain, responses, lite):
            next(iter(stream))
        served.system.kill(replica["pid"])
        with pytest.raises(openai.APIError, match="again"):
            list(langchain)
        with pytest.raises(Exception, match="again"):
            list(responses)
        with pytest.raises(openai.APIError, match="again"):
            list(lite)
        served.wait_until_it_answers()


def text_of(part: Any) -> str:
    """Of a message of LangChain, or of a chunk of litellm."""
    if hasattr(part, "choices"):
        return "".join(choice.delta.content or "" for choice in part.choices)
    return str(part.text)


def test_a_stream_over_a_kill_is_what_it_would_have_been(served: Served) -> None:
    undisturbed = ["".join(map(text_of, stream)) for stream in streams(served, 500)]
    with served.waiting_for_the_next():
        replica = served.ready_replica()
        read = [(stream, [next(iter(stream))]) for stream in streams(served, 500)]
        served.system.kill(replica["pid"])
        seen = ["".join(map(text_of, first + list(stream))) for stream, first in read]
    assert seen == undisturbed
