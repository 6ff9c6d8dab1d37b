"""What is missing in vLLM's answers to /v1/responses: `store`, and the event of one cut short.

Touch points: that `create_responses` returns the answer or its events as models that keep fields
which they do not know, and that it stores nothing of a request whose `store` is false; that it
makes a chat's messages of one item after the other (`_construct_message_from_response_item`).
Imports vLLM: only after `environment.prepare`.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from copy import deepcopy
from typing import Any

from openai.types.responses import ResponseIncompleteEvent
from vllm.entrypoints.openai.responses.protocol import ResponseCompletedEvent, ResponsesResponse
from vllm.entrypoints.openai.responses.utils import _construct_message_from_response_item

from penstock.replica.vllm.tap import CallTap


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


def mended(answer: Any, tap: CallTap) -> Any:
    """The answer, or its events, as the API has them; vLLM's error as it is."""
    if isinstance(answer, ResponsesResponse):
        return _not_stored(answer)
    return _events(answer, tap) if isinstance(answer, AsyncGenerator) else answer


async def _events(events: AsyncGenerator[Any, None], tap: CallTap) -> AsyncGenerator[Any, None]:
    """The events; those that vLLM has before its engine said anything wait for that, since another
    replica can answer as long as nothing was sent."""
    early: list[Any] = []
    async with aclosing(events):
        async for event in events:
            early.append(_mended(event))
            if tap.head_known():
                for one in early:
                    yield one
                early.clear()


def _mended(event: Any) -> Any:
    if isinstance(getattr(event, "response", None), ResponsesResponse):
        _not_stored(event.response)
    if isinstance(event, ResponseCompletedEvent) and event.response.status == "incomplete":
        # vLLM calls every end completed; the API has an event of its own for this one.
        return IncompleteEvent.model_construct(
            type="response.incomplete",
            sequence_number=event.sequence_number,
            response=event.response,
        )
    return event


def _not_stored(response: ResponsesResponse) -> ResponsesResponse:
    response.store = False
    return response


__all__ = ["IncompleteEvent", "ends", "mended"]
