"""Keeps what vLLM's serving layer would turn into prose: the error of a call, as a value.

vLLM answers an error in three places, and in each the exception is taken before it does so: the
exception handlers of its app, which are ours here; `create_error_response` of its serving objects,
by which they also tell of errors inside a stream; and the handlers of Anthropic's endpoints, which
catch everything. What of a stream breaks after its head passes the app as an exception. The value
goes to the call's tap; what vLLM answers then is not looked at.

Imports vLLM: only after `environment.prepare`.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Any, Final

from fastapi import FastAPI, Request, Response

from penstock.replica.values import Failed
from penstock.replica.vllm.failures import exceptions
from penstock.replica.vllm.serving.asgi import App, Message
from penstock.replica.vllm.serving.tap import CURRENT, CallTap

log = logging.getLogger(__name__)

_CATCHING: Final = (
    ("anthropic_serving_messages", "create_messages"),
    ("anthropic_serving_messages", "count_tokens"),
)
"""Methods whose exceptions vLLM's own routes catch."""


def keep_errors(app: FastAPI) -> None:
    """Has the errors of calls kept, in the app and in all of its state. Call it when the
    state's methods are what they shall be: of these the outermost counts."""
    for kind in app.exception_handlers:
        app.add_exception_handler(kind, _handle)
    # Built with the old handlers in it; it is built anew with the first request.
    app.middleware_stack = None
    app.add_middleware(_Late)
    for serving in vars(app.state)["_state"].values():
        if hasattr(serving, "create_error_response"):
            serving.create_error_response = _kept_words(serving.create_error_response)
    for place, method in _CATCHING:
        serving = getattr(app.state, place, None)
        if serving is not None:
            setattr(serving, method, _kept_raised(getattr(serving, method)))


def note(error: BaseException) -> None:
    """Keeps the error of the current call; the first one counts."""
    tap = CURRENT.get()
    if tap is None or tap.refused is not None:
        return
    tap.refused = failure(error, tap)
    if tap.refused.fault != "client":
        log.error("call %s: an error inside vLLM", tap.call.request_id, exc_info=error)


def failure(error: BaseException, tap: CallTap) -> Failed:
    """What an exception in a call means; of one whose request the engine lost, what that meant."""
    call = tap.call
    return tap.lost or exceptions.failed(
        error, call.path, call.body, reading=not tap.parsed, begun=tap.head_known()
    )


async def _handle(request: Request, error: Exception) -> Response:
    """Answers in vLLM's place, with a status alone: the client is told from the tap."""
    note(error)
    tap = CURRENT.get()
    failed = tap.refused if tap is not None else None
    return Response(status_code=failed.status if failed is not None else 500)


def _kept_words(create: Callable[..., Any]) -> Callable[..., Any]:
    """vLLM's `create_error_response`, noting what it is made of."""

    def kept(message: str | Exception, *args: Any, **more: Any) -> Any:
        response = create(message, *args, **more)
        tap = CURRENT.get()
        if isinstance(message, Exception):
            note(message)
        elif tap is not None and tap.refused is None:
            error = response.error
            tap.refused = exceptions.told(int(error.code), message, error.param)
        return response

    return kept


def _kept_raised(create: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    async def kept(*args: Any, **more: Any) -> Any:
        try:
            return await create(*args, **more)
        except Exception as error:
            note(error)
            raise

    return kept


class _Late:
    """What the app raises after its first byte, when no handler of its own can answer."""

    def __init__(self, app: App) -> None:
        self._app = app

    async def __call__(self, scope: Message, receive: Any, send: Any) -> None:
        try:
            await self._app(scope, receive, send)
        except Exception as error:
            # Starlette's own, that it could not answer any more, names the reason as its cause.
            note(error.__cause__ or error)
            raise
