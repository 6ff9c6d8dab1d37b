"""MicroServing by REST: an HTTP face of the replica's own gRPC service, for routers of one's own.

As a client of that service it is counted, drained and refused as every caller is. It adds JSON, and
asks for a token of role `router`.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Mapping
from typing import Any, Final

import grpc
import grpc.aio
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from penstock.replica.adapters.agent import Metadata
from penstock.replica.calls import wire as calls_wire
from penstock.replica.engine_calls.json_bodies import REQUESTS, body_of, request_of
from penstock.replica.engine_calls.methods import failure
from penstock.replica.engine_calls.router_tokens import RouterTokens
from penstock.replica.microserving.values import MicroServingError
from penstock.replica.values import Failed
from penstock.v1 import inference_pb2

MOST_BYTES: Final = 32 << 20  # of a request's body
_BODY_WITHIN_S: Final = 60.0

_STREAMED: Final = "start_generate"

_STATUSES: Final[Mapping[grpc.StatusCode, int]] = {
    grpc.StatusCode.INVALID_ARGUMENT: 400,
    grpc.StatusCode.NOT_FOUND: 404,
    grpc.StatusCode.FAILED_PRECONDITION: 409,
    grpc.StatusCode.UNIMPLEMENTED: 501,
    grpc.StatusCode.UNAVAILABLE: 503,
    grpc.StatusCode.RESOURCE_EXHAUSTED: 503,
    grpc.StatusCode.DEADLINE_EXCEEDED: 504,
}


class _Refused(Exception):
    def __init__(self, failed: Failed) -> None:
        self.failed = failed


def make_app(stub: Any, metadata: Metadata, tokens: RouterTokens) -> Starlette:
    """The application; `stub` is a client of MicroServing, which takes calls with `metadata`."""

    def route(name: str) -> Route:
        async def answer(request: Request) -> Response:
            try:
                _admit(request, tokens)
                asked = request_of(name, await _body(request))
                call = getattr(stub, name.title().replace("_", ""))(asked, metadata=metadata)
                return await (_stream if name == _STREAMED else _unary)(request, call)
            except _Refused as refused:
                return _error(refused.failed)
            except MicroServingError as error:
                return _error(failure(error))

        return Route(f"/microserving/v1/{name}", answer, methods=["POST"])

    return Starlette(routes=[route(name) for name in REQUESTS])


def _admit(request: Request, tokens: RouterTokens) -> None:
    header = request.headers.get("authorization", "")
    if failed := tokens.refusal(header, time.monotonic()):
        raise _Refused(failed)


async def _body(request: Request) -> bytes:
    parts, size = [], 0
    try:
        async with asyncio.timeout(_BODY_WITHIN_S):
            async for part in request.stream():
                size += len(part)
                if size > MOST_BYTES:
                    raise _Refused(_TOO_LARGE)
                parts.append(part)
    except TimeoutError:
        raise _Refused(_TOO_SLOW) from None
    return b"".join(parts)


async def _unary(request: Request, call: Any) -> Response:
    reply = await _coming(request, call, call)
    return Response(body_of(reply), media_type="application/json")


async def _coming(request: Request, call: Any, coming: Awaitable[Any]) -> Any:
    """What comes of a call, which is cancelled where its client leaves before."""
    async with asyncio.TaskGroup() as tasks:
        watch = tasks.create_task(_cancel_when_gone(request, call))
        refused: Failed  # raised below: the TaskGroup would wrap it
        try:
            return await coming
        except asyncio.CancelledError:
            if not watch.done():
                raise
            refused = _GONE
        except grpc.aio.AioRpcError as error:
            refused = _failed_of(error)
        finally:
            watch.cancel()
    raise _Refused(refused)


async def _cancel_when_gone(request: Request, call: Any) -> None:
    await request.receive()  # its body was read: only its end is left to come
    call.cancel()


async def _stream(request: Request, call: Any) -> Response:
    """The answer's own events, as they come; a failure before the first is the whole answer."""
    events = aiter(call)
    first = await _coming(request, call, anext(events, None))
    if first is None:
        raise _Refused(_BROKEN)
    if first.HasField("failed"):
        raise _Refused(_failure_in(first))
    moved = first.head.kv_moved_tokens
    headers = {"x-penstock-kv-moved": str(moved)} if moved else {}
    return StreamingResponse(_bodies(first, events, call), 200, headers, first.head.content_type)


async def _bodies(
    first: inference_pb2.CallEvent, rest: AsyncIterator[inference_pb2.CallEvent], call: Any
) -> AsyncGenerator[bytes, None]:
    try:
        yield first.chunk.body
        async for event in rest:
            yield event.chunk.body
            if event.HasField("failed"):
                yield b"data: " + _error_body(_failure_in(event)) + b"\n\n"
    except grpc.aio.AioRpcError as error:
        yield b"data: " + _error_body(_failed_of(error)) + b"\n\n"
    finally:
        call.cancel()


def _failure_in(event: inference_pb2.CallEvent) -> Failed:
    told = calls_wire.events_of(event)[-1]
    return told if isinstance(told, Failed) else _BROKEN


def _failed_of(error: grpc.aio.AioRpcError) -> Failed:
    """The service's "code: message" as it was before."""
    code, colon, message = (error.details() or "").partition(": ")
    status = _STATUSES.get(error.code(), 500)
    kind = "invalid_request_error" if status == 400 else "server_error"
    if not colon or " " in code:
        code, message = "upstream_error", error.details() or error.code().name
    return Failed(status, kind, code, message)


def _error(failed: Failed) -> Response:
    return Response(_error_body(failed), failed.status, media_type="application/json")


def _error_body(failed: Failed) -> bytes:
    told = {
        "message": failed.message,
        "type": failed.type,
        "param": failed.param or None,
        "code": failed.code,
    }
    return json.dumps({"error": told}).encode()


_BROKEN: Final = Failed(500, "server_error", "upstream_error", "The answer ended half-way.")

_GONE: Final = Failed(499, "invalid_request_error", "client_gone", "The client has left.")

_TOO_SLOW: Final = Failed(
    408,
    "invalid_request_error",
    "request_timeout",
    f"The body did not come within {_BODY_WITHIN_S:.0f} seconds.",
)

_TOO_LARGE: Final = Failed(
    413,
    "invalid_request_error",
    "request_too_large",
    f"The body has more than {MOST_BYTES} bytes.",
)
