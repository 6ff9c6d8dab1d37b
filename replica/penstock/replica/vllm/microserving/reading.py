"""The prompt that a call would submit, read off where vLLM submits it: made by the model's own
template and tokenizer, trimmed, with marks taken off. The engine never gets it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any, Final

from penstock.replica.calls.answers import EventSink
from penstock.replica.microserving.values import MicroServingError
from penstock.replica.values import Call, Failed
from penstock.replica.vllm.serving.answering import answer
from penstock.replica.vllm.serving.asgi import App
from penstock.replica.vllm.serving.tap import CallTap

_PARTING_S: Final = 2.0


class ReadingTap(CallTap):
    """Of a call that is asked for its prompt alone."""

    reads = True

    def __init__(self, call: Call) -> None:
        super().__init__(call)
        self.prompts: list[Any] = []
        self.read = asyncio.Event()

    def instead(self, prompt: Any) -> AsyncGenerator[Any, None] | None:
        """Keeps a prompt; what comes of it never comes."""
        self.prompts.append(prompt)
        return self._never()

    async def _never(self) -> AsyncGenerator[Any, None]:
        self.read.set()  # all prompts of the call are submitted before the first is waited for
        await asyncio.Event().wait()
        yield None


async def prompts_of(app: App, call: Call) -> list[Any]:
    """The call's prompts, as vLLM has them. Raises `MicroServingError`."""
    tap, sink = ReadingTap(call), EventSink()
    async with asyncio.TaskGroup() as tasks:
        answering = tasks.create_task(answer(app, call, sink, tap))
        read = tasks.create_task(tap.read.wait())
        try:
            await asyncio.wait((answering, read), return_when=asyncio.FIRST_COMPLETED)
        finally:  # also where the caller leaves: vLLM's own tasks end by that alone
            sink.leave(answering)
            await asyncio.wait((answering,), timeout=_PARTING_S)
            answering.cancel()
            read.cancel()
    if not tap.prompts:
        raise await _refusal(sink)
    return tap.prompts


async def _refusal(sink: EventSink) -> MicroServingError:
    if not sink.has_news():
        return MicroServingError("unsupported", "such a call submits no prompt")
    event = await sink.take()
    if isinstance(event, Failed):
        return MicroServingError("bad_request", event.message)
    return MicroServingError("unsupported", "such a call submits no prompt")
