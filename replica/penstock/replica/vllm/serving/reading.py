"""Large bodies become requests beside the loop, before FastAPI asks for them.

FastAPI parses and judges a body in one go, on the loop. So this is done ahead of it, and FastAPI is
shown an empty object, of which its validator makes what was made already. What is wrong in a body
is told at once, without the app. A body that is no JSON is left to FastAPI.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from typing import Any

from fastapi.exceptions import RequestValidationError
from pydantic import ValidationError

from penstock.replica.vllm.serving import handlers
from penstock.replica.vllm.serving.asgi import App, Message
from penstock.replica.vllm.serving.aside import Aside
from penstock.replica.vllm.serving.tap import CURRENT, CallTap


class Prepared:
    """A validator that first looks for what was made of the current call's body."""

    def __init__(self, validator: Any) -> None:
        self._validator = validator

    def validate_python(self, value: Any, **more: Any) -> Any:
        """As pydantic's."""
        tap = CURRENT.get()
        if tap is None or tap.made is None:
            return self._validator.validate_python(value, **more)
        made, tap.made = tap.made, None
        return made


def prepare(routes: Iterable[Any], paths: Collection[str]) -> dict[str, Any]:
    """Has the routes of these paths look for what was made ahead. Returns what makes it, by path:
    of several routes for one the first counts."""
    makers: dict[str, Any] = {}
    for route in routes:
        field = getattr(route, "body_field", None)
        if field is not None and route.path in paths and route.path not in makers:
            makers[route.path] = field._type_adapter.validator
            field._type_adapter.validator = Prepared(makers[route.path])
    return makers


class ReadAside:
    """The app, given large bodies as requests that are made."""

    def __init__(self, app: App, aside: Aside, makers: dict[str, Any]) -> None:
        self._app = app
        self._aside = aside
        self._makers = makers

    async def __call__(self, scope: Message, receive: Any, send: Any) -> None:
        tap, maker = CURRENT.get(), self._makers.get(scope.get("path", ""))
        if tap is None or maker is None or not self._aside.takes_call():
            return await self._app(scope, receive, send)
        async with self._aside.made_ready(tap):
            await self._aside.run(_read, tap, maker)
            if tap.refused is not None:
                await send({"type": "http.response.start", "status": tap.refused.status})
                await send({"type": "http.response.body"})
            elif tap.made is None:
                await self._app(scope, receive, send)
            else:
                await self._app(scope, _Emptied(receive), send)


class _Emptied:
    """The client of a body that has been read."""

    def __init__(self, receive: Any) -> None:
        self._receive = receive

    async def __call__(self) -> Message:
        message: Message = await self._receive()
        return {**message, "body": b"{}"} if message["type"] == "http.request" else message


def _read(tap: CallTap, maker: Any) -> None:
    """Makes the tap's request, or says what is wrong with it. Neither: it is no JSON."""
    try:
        value = json.loads(tap.call.body)
    except (ValueError, RecursionError):
        return
    try:
        tap.made = maker.validate_python(value, from_attributes=True)
    except ValidationError as error:
        told = [{**one, "loc": ("body", *one["loc"])} for one in error.errors(include_url=False)]
        handlers.note(RequestValidationError(told, body=value))
    except Exception as error:
        handlers.note(error)
