"""One call from its body to its last event, over the app that vLLM serves with."""

from __future__ import annotations

import asyncio
from typing import Final

from penstock.replica.calls import failures
from penstock.replica.engine import Sink
from penstock.replica.values import Call
from penstock.replica.vllm.endpoints import ENDPOINTS
from penstock.replica.vllm.serving.asgi import App, Exchange
from penstock.replica.vllm.serving.tap import CallTap

_PARTING_S: Final = 2.0
"""How long vLLM gets to notice that the client is gone; it takes milliseconds."""


async def answer(app: App, call: Call, sink: Sink, tap: CallTap | None = None) -> None:
    """Writes the call's answer into the sink.

    vLLM only learns that a client is gone by being told so on its `receive`: cancelling the app
    would leave its request running in the engine. Cancelled it is only if it does not listen.
    """
    tap = tap or CallTap(call)
    exchange = Exchange(app, ENDPOINTS[call.path].path, tap, sink)
    loop = asyncio.get_running_loop()
    task = asyncio.current_task()
    assert task is not None
    timers: list[asyncio.TimerHandle] = []

    def leave() -> None:
        exchange.hang_up()
        timers.append(loop.call_later(_PARTING_S, task.cancel))

    def too_late() -> None:
        sink.fail(failures.too_late(call.deadline_ms))
        leave()

    sink.costs(tap.usage)
    sink.when_gone(leave)
    if call.deadline_ms:
        timers.append(loop.call_later(call.deadline_ms / 1000, too_late))
    try:
        await exchange.run()
    finally:
        for timer in timers:
            timer.cancel()
