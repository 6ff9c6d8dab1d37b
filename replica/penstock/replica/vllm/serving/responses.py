"""What is missing in vLLM's /v1/responses: fields that every answer has, the event of one that was
cut short, and the count of an input's tokens.

Imports vLLM: only after `environment.prepare`.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing
from copy import deepcopy
from datetime import UTC, datetime
from typing import Any, Final

from openai.types.responses import ResponseIncompleteEvent, ResponseTextConfig
from starlette.requests import Request
from starlette.responses import JSONResponse
from vllm.entrypoints.openai.responses.protocol import (
    ResponseCompletedEvent,
    ResponsesRequest,
    ResponsesResponse,
)
from vllm.entrypoints.openai.responses.utils import _construct_message_from_response_item

from penstock.replica.vllm.serving.tap import CallTap


class IncompleteEvent(ResponseIncompleteEvent):
    """The last event of an answer that reached its limit, with vLLM's own response in it."""

    response: ResponsesResponse


def ends(_: Any, items: Sequence[Any]) -> list[int]:
    """How many messages of a chat vLLM has made once it has read the first, the second, ... item;
    what it adds to the message before makes none."""
    made: list[Any] = []
    counts = []
    for item in deepcopy(items):
        before = made[-1] if made else None
        message = _construct_message_from_response_item(item, prev_msg=before)
        if message is not None:
            made.append(message)
        counts.append(len(made))
    return counts


_ECHOED: Final = ("prompt_cache_key", "safety_identifier")
"""Fields of a request that its answer repeats, and vLLM's does not."""


def echoed(request: Any) -> dict[str, Any]:
    """What the answer to a parsed request is to repeat."""
    if not isinstance(request, ResponsesRequest):
        return {}
    return {name: getattr(request, name, None) for name in _ECHOED}


def mended(answer: Any, tap: CallTap) -> Any:
    """The answer, or its events, as the API has them; vLLM's error as it is."""
    if isinstance(answer, ResponsesResponse):
        return _whole(answer, tap)
    return _events(answer, tap) if isinstance(answer, AsyncGenerator) else answer


async def _events(events: AsyncGenerator[Any, None], tap: CallTap) -> AsyncGenerator[Any, None]:
    """The events; those that vLLM has before its engine said anything wait for that, since another
    replica can answer as long as nothing was sent."""
    early: list[Any] = []
    async with aclosing(events):
        async for event in events:
            early.append(_mended(event, tap))
            if tap.head_known():
                for one in early:
                    yield one
                early.clear()


def _mended(event: Any, tap: CallTap) -> Any:
    _with_logprobs(_parts(event))
    if isinstance(getattr(event, "response", None), ResponsesResponse):
        _whole(event.response, tap)
    if isinstance(event, ResponseCompletedEvent) and event.response.status == "incomplete":
        # vLLM calls every end completed; the API has an event of its own for this one.
        return IncompleteEvent.model_construct(
            type="response.incomplete",
            sequence_number=event.sequence_number,
            response=event.response,
        )
    return event


def _whole(response: ResponsesResponse, tap: CallTap) -> ResponsesResponse:
    """The response with all fields that the API's always has."""
    now = int(datetime.now(UTC).timestamp())
    own = {
        "store": False,
        "error": None,
        "completed_at": now if response.status == "completed" else None,
        "text": response.text or ResponseTextConfig.model_validate({"format": {"type": "text"}}),
        "top_logprobs": response.top_logprobs or 0,
    }
    for name, value in (own | tap.echoed).items():
        setattr(response, name, value)
    for item in response.output:
        _with_logprobs(_parts(item))
    return response


def _parts(holder: Any) -> Iterator[Any]:
    """The parts of text in an event, or in an item of an answer."""
    for one in (holder, getattr(holder, "part", None), getattr(holder, "item", None)):
        content = getattr(one, "content", None)
        yield from (one, *(content if isinstance(content, list) else ()))


def _with_logprobs(parts: Iterator[Any]) -> None:
    for part in parts:
        if getattr(part, "type", "") == "output_text" and part.logprobs is None:
            part.logprobs = []


def count_inputs(router: Any, serving: Any) -> None:
    """Adds the endpoint that counts the tokens of an input, which needs nothing stored."""

    async def count(request: ResponsesRequest, raw_request: Any = None) -> Any:
        if (refusal := await serving._check_model(request)) is not None:
            return refusal
        rendered = await serving._render_resolved_response_inputs(request, None)
        engine_input = getattr(rendered, "engine_input", None)
        if engine_input is None:
            return rendered
        tokens = len(engine_input["prompt_token_ids"])
        return {"object": "response.input_tokens", "input_tokens": tokens}

    serving.count_input_tokens = count
    router.add_api_route(INPUT_TOKENS, _count, methods=["POST"], response_model=None)


async def _count(request: ResponsesRequest, raw_request: Request) -> JSONResponse:
    serving = raw_request.app.state.openai_serving_responses
    answer = await serving.count_input_tokens(request, raw_request)
    if isinstance(answer, dict):
        return JSONResponse(answer)
    return JSONResponse(answer.model_dump(), status_code=answer.error.code)


INPUT_TOKENS: Final = "/v1/responses/input_tokens"
