"""The bodies of a registration, which comes in two kinds: JSON, or files that are sent along."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any, Final, TypeVar

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ValidationError
from starlette.requests import ClientDisconnect

from penstock.control.admin.adapters.models import NewAdapterModel
from penstock.control.admin.middleware import MULTIPART
from penstock.control.errors import Code, Refused

SILENCE: Final = timedelta(seconds=30)
"""Between two pieces of an upload."""

M = TypeVar("M", bound=BaseModel)

REGISTRATION: Final[dict[str, Any]] = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {"schema": NewAdapterModel.model_json_schema()},
            MULTIPART: {
                "schema": {
                    "type": "object",
                    "required": ["manifest"],
                    "properties": {
                        "manifest": {
                            "type": "string",
                            "description": "JSON: name, version, base, labels; sha256 of files by "
                            "their names, where they are to be checked",
                        },
                        "adapter_config.json": {"type": "string", "format": "binary"},
                        "adapter_model.safetensors": {"type": "string", "format": "binary"},
                        "archive": {
                            "type": "string",
                            "format": "binary",
                            "description": "a tar of the two files, plain or gzip, in their place",
                        },
                    },
                }
            },
        },
    }
}
"""What the API's document says of it."""


def is_upload(request: Request) -> bool:
    """Whether files are sent along."""
    kind = request.headers.get("content-type", "")
    return kind.partition(";")[0].strip().lower() == MULTIPART


def parsed(model: type[M], text: bytes) -> M:
    """A body as its model. Raises what FastAPI does for bodies that it parses itself."""
    try:
        return model.model_validate_json(text)
    except ValidationError as error:
        raise RequestValidationError(
            [{**each, "loc": ("body", *each["loc"])} for each in error.errors()]
        ) from None


async def pieces_of(request: Request, silence: timedelta = SILENCE) -> AsyncIterator[bytes]:
    """The body as it comes. Raises `body-too-slow` where it stops coming for so long."""
    stream = request.stream()
    while True:
        try:
            async with asyncio.timeout(silence.total_seconds()):
                piece = await anext(stream, None)
        except (TimeoutError, ClientDisconnect):
            raise Refused(
                f"nothing came of the body for {silence.total_seconds():.0f} s: send it again",
                Code.BODY_TOO_SLOW,
            ) from None
        if piece is None:
            return
        yield piece
