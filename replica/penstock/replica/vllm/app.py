"""vLLM's own OpenAI server, built in this process and never given a socket.

Touch points: `build_app`, `init_app_state`, the app's state, and the two `create_...` methods of
its serving objects, which get our engine controls put on the parsed request.
Imports vLLM: only after `environment.prepare`.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any

from vllm.entrypoints.launchers.api_server.app_state import init_app_state
from vllm.entrypoints.launchers.app import build_app
from vllm.exceptions import VLLMValidationError

from penstock.replica.vllm import errors
from penstock.replica.vllm.asgi import App
from penstock.replica.vllm.client import TappedLLM
from penstock.replica.vllm.controls import ENDPOINTS, NotOffered, take_over
from penstock.replica.vllm.models import CallModels, call_models
from penstock.replica.vllm.tap import CURRENT

Create = Callable[[Any, Any], Awaitable[Any]]


async def make_app(llm: TappedLLM, args: Namespace) -> tuple[App, CallModels]:
    """The app for an engine that is up, and its table of models."""
    tasks = await llm.get_supported_tasks()
    app = build_app(args, tasks, llm.model_config)
    with call_models():
        await init_app_state(llm, app.state, args, tasks)
    # vLLM's error handlers tell its server to stop; here nobody listens, the replica watches.
    app.state.server = SimpleNamespace(should_exit=False)
    most = llm.vllm_config.scheduler_config.max_num_seqs
    for place, method in ENDPOINTS.values():
        serving = getattr(app.state, place, None)
        if serving is not None:
            setattr(serving, method, _controlled(getattr(serving, method), most))
    return app, app.state.openai_serving_models


def _controlled(create: Create, most_sequences: int) -> Create:
    """`create`, with the engine controls of the request set from the call."""

    async def controlled(request: Any, raw_request: Any = None) -> Any:
        tap = CURRENT.get()
        if tap is not None:
            try:
                take_over(request, tap.call, most_sequences)
            except NotOffered as error:
                raise VLLMValidationError(str(error), parameter=error.parameter) from None
        try:
            return await create(request, raw_request)
        except MemoryError:
            # vLLM's handlers would make it an answer like any other error's.
            if tap is not None:
                tap.lost = errors.oom_contained()
            raise

    return controlled


__all__ = ["make_app"]
