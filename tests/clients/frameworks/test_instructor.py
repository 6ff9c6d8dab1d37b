"""instructor: objects of a class, by a tool or by a schema, whole and as they grow."""

from __future__ import annotations

from typing import Any

import instructor
import openai
import pytest
from instructor.core import InstructorRetryException
from pydantic import BaseModel, ConfigDict

from tests.clients.questions import PERSON, TOO_LONG, asking
from tests.clients.served import LOADING, MODEL, Served

# The libraries warn of each other: not our concern here.
pytestmark = [pytest.mark.vllm, pytest.mark.filterwarnings("ignore")]

ASKED = "What is a gateway? Answer in JSON."


class Topic(BaseModel):
    """What an answer must look like."""

    topic: str
    known: bool


class Facts(BaseModel):
    """Any object."""

    model_config = ConfigDict(extra="allow")


class Person(BaseModel):
    """Who is spoken of."""

    name: str
    age: int


def patched(served: Served, mode: instructor.Mode) -> Any:
    """The openai SDK as instructor patches it."""
    client = openai.OpenAI(base_url=served.base_url, api_key="none", max_retries=0, timeout=60)
    return instructor.from_openai(client, mode=mode)


every_mode = pytest.mark.parametrize(
    "mode",
    [
        instructor.Mode.TOOLS,
        instructor.Mode.TOOLS_STRICT,
        instructor.Mode.JSON_SCHEMA,
        instructor.Mode.RESPONSES_TOOLS,
    ],
)


@every_mode
def test_every_mode_gives_an_object_of_the_class(served: Served, mode: instructor.Mode) -> None:
    reply = patched(served, mode).chat.completions.create(
        model=MODEL, messages=asking(PERSON), response_model=Person, temperature=0, max_retries=2
    )
    assert isinstance(reply, Person)


def test_json_mode_gives_an_object_whose_shape_is_only_asked_for_in_words(served: Served) -> None:
    reply = patched(served, instructor.Mode.JSON).chat.completions.create(
        model=MODEL, messages=asking(PERSON), response_model=Facts, temperature=0, max_tokens=400
    )
    assert reply.model_extra


@pytest.mark.parametrize("mode", [instructor.Mode.TOOLS, instructor.Mode.JSON_SCHEMA])
def test_an_object_grows_as_it_streams(served: Served, mode: instructor.Mode) -> None:
    seen = list(
        patched(served, mode).chat.completions.create_partial(
            model=MODEL, messages=asking(ASKED), response_model=Topic, temperature=0
        )
    )
    assert isinstance(seen[-1].topic, str)
    assert isinstance(seen[-1].known, bool)


@pytest.mark.parametrize(
    ("asked", "status"),
    [
        ({"model": "gpt-9"}, 404),
        ({"top_p": 7}, 400),
        ({"messages": asking(TOO_LONG)}, 400),
        ({"model": LOADING}, 503),
    ],
    ids=["unknown model", "bad field", "too long", "loading"],
)
def test_errors_keep_the_status_of_the_openai_sdk(
    served: Served, asked: dict[str, Any], status: int
) -> None:
    whole = {"model": MODEL, "messages": asking(ASKED), "response_model": Topic, **asked}
    with pytest.raises((openai.APIStatusError, InstructorRetryException)) as caught:
        patched(served, instructor.Mode.JSON_SCHEMA).chat.completions.create(**whole, max_retries=1)
    error: Any = caught.value
    while not isinstance(error, openai.APIStatusError):
        error = error.__cause__
        assert error is not None, f"no error of the SDK's behind {caught.value!r}"
    assert error.status_code == status
