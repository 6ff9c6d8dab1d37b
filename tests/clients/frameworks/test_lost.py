"""A replica is killed while it streams: each library tells its caller, and none calls it whole."""

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


def test_a_lost_stream_is_an_error_and_never_a_whole_answer(served: Served) -> None:
    langchain = chat_model(served, responses=False, max_tokens=1900, extra_body=ENDLESS).stream(
        STORY
    )
    responses = chat_model(served, responses=True, max_tokens=1900, extra_body=ENDLESS).stream(
        STORY
    )
    lite = litellm.completion(
        model=f"openai/{MODEL}",
        messages=asking(STORY),
        stream=True,
        max_tokens=1900,
        extra_body=ENDLESS,
        api_base=served.base_url,
        api_key="none",
        max_retries=0,
    )
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
