"""What goes wrong, as the openai SDK tells it: the class, and the four keys of the error."""

from __future__ import annotations

from typing import Any

import openai
import pytest

from tests.clients.questions import TOO_LONG, asking
from tests.clients.served import LOADING, MODEL, Served

pytestmark = pytest.mark.vllm

CALLS: dict[str, Any] = {
    "chat": lambda c, model, text, **more: c.chat.completions.create(
        model=model, messages=asking(text), **more
    ),
    "completions": lambda c, model, text, **more: c.completions.create(
        model=model, prompt=text, **more
    ),
    "responses": lambda c, model, text, **more: c.responses.create(model=model, input=text, **more),
}
every_call = pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
streamed_or_not = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])


@streamed_or_not
@every_call
def test_an_unknown_model_is_not_found_and_the_known_ones_are_named(
    client: Any, call: Any, stream: bool
) -> None:
    with pytest.raises(openai.NotFoundError) as caught:
        call(client, "gpt-9", "Hello", stream=stream)
    assert caught.value.code == "model_not_found"
    assert caught.value.type == "invalid_request_error"
    assert caught.value.param == "model"
    assert "gpt-9" in caught.value.message
    assert MODEL in caught.value.message


@streamed_or_not
@every_call
def test_a_field_of_the_wrong_type_is_a_bad_request_that_names_it(
    client: Any, call: Any, stream: bool
) -> None:
    with pytest.raises(openai.BadRequestError) as caught:
        call(client, MODEL, "Hello", temperature="hot", stream=stream)
    assert caught.value.type == "invalid_request_error"
    assert caught.value.param == "temperature"
    assert caught.value.request_id


@streamed_or_not
@every_call
def test_a_prompt_that_is_too_long_is_a_bad_request_of_its_own_code(
    client: Any, call: Any, stream: bool
) -> None:
    with pytest.raises(openai.BadRequestError) as caught:
        call(client, MODEL, TOO_LONG, stream=stream)
    assert caught.value.code == "context_length_exceeded"


@streamed_or_not
@every_call
def test_a_model_that_loads_is_unavailable_and_says_when_to_come_back(
    client: Any, call: Any, stream: bool
) -> None:
    with pytest.raises(openai.InternalServerError) as caught:
        call(client, LOADING, "Hello", stream=stream)
    assert caught.value.status_code == 503
    assert caught.value.code == "model_loading"
    assert 1 <= int(caught.value.response.headers["retry-after"]) <= 60
    assert caught.value.response.headers["x-should-retry"] == "true"


def test_the_sdk_retries_what_it_is_told_to_retry(served: Served, client: Any) -> None:
    seen: list[int] = []
    patient = client.with_options(max_retries=1)
    with pytest.raises(openai.InternalServerError) as caught:
        patient.chat.completions.create(
            model=LOADING, messages=asking("Hello"), extra_headers={"X-Request-Id": "patient"}
        )
    seen.append(int(caught.value.request.headers["x-stainless-retry-count"]))
    assert seen == [1]


def test_a_path_that_nobody_serves_is_not_found_and_says_what_is(client: Any) -> None:
    with pytest.raises(openai.NotFoundError) as caught:
        client.images.generate(prompt="a gateway", model=MODEL)
    assert caught.value.code == "not_found"
    assert "/v1/chat/completions" in caught.value.message
