"""What every request has to pass before a handler sees it: Host, Origin, token, type, size.

In this order, so that nothing is read of a stranger's body. A body is taken whole, up to a limit
and within a time, before the handler runs; but for an adapter's files, which are too large.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from datetime import timedelta

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from penstock.control.admin.auth import check_role, identified
from penstock.control.admin.brake import MOST_WRONG, PERIOD, Brake
from penstock.control.admin.hosts import check_host, check_origin
from penstock.control.admin.problems import explained
from penstock.control.errors import Code, PenstockError, Refused, Unavailable, UnknownToken
from penstock.control.managers.tenancy.tokens import TokenManager
from penstock.control.state.tenancy.tokens import Role

BODY_LIMIT = 1 << 20  # bytes
REPORT_LIMIT = 8 << 20  # bytes, of a body with an evaluation's report
DOCUMENTS_LIMIT = 32 << 20  # bytes, of a whole fleet that is said at once
BODY_TIME = timedelta(seconds=30)
GUARDED = "/admin/"
WRITING = ("POST", "PUT", "PATCH")
JSON = "application/json"
UPLOADS = "/admin/v1/adapters"
APPLY = "/admin/v1/apply"
MULTIPART = "multipart/form-data"
STOPPING = "this head ends before the request does: send it again"


class AdminMiddleware:
    """ASGI middleware. `hosts`: names beside the loopback's and the connection's own address."""

    def __init__(self, app: ASGIApp, tokens: TokenManager, hosts: Collection[str]) -> None:
        self._app = app
        self._tokens = tokens
        self._hosts = hosts
        self._brake = Brake()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hands the request on, or answers with the reason why not."""
        begun = False

        async def noted(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        try:
            await self._admit(scope, receive, noted)
        except asyncio.CancelledError:
            # The server's, which ends and has waited for long enough: an upload may take longer.
            if begun:
                raise
            response = explained(Unavailable(STOPPING))
            response.headers["connection"] = "close"
            await response(scope, receive, send)

    async def _admit(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope)
        try:
            self._check_names(scope, headers)
            if scope["path"].startswith(GUARDED):
                await self._check_token(scope, headers)
            if _is_streamed(scope, headers):
                await self._app(scope, receive, send)
                return
            _check_type(scope["method"], headers)
            body = await _read(headers, receive, _limit_of(scope["path"]))
        except PenstockError as error:
            response = explained(error)
            response.headers["connection"] = "close"  # what is left of the body is not read
            await response(scope, receive, send)
            return
        await self._app(scope, _replay(body, receive), send)

    def _check_names(self, scope: Scope, headers: Headers) -> None:
        hosts = headers.getlist("host")
        if len(hosts) != 1:
            raise Refused(f"the request has {len(hosts)} Host headers: send one", Code.MISDIRECTED)
        server = scope.get("server") or ("", None)
        check_host(hosts[0], server[0], self._hosts)
        for origin in headers.getlist("origin"):
            check_origin(origin, hosts[0], self._hosts)

    async def _check_token(self, scope: Scope, headers: Headers) -> None:
        try:
            token = identified(headers.getlist("authorization"), self._tokens.holder)
        except UnknownToken:
            address = (scope.get("client") or ("", 0))[0]
            if self._brake.wrong(address, asyncio.get_running_loop().time()):
                raise Refused(
                    f"{address} sent more than {MOST_WRONG} wrong tokens within {PERIOD:.0f} s: "
                    "send a right one, which is taken at any time",
                    Code.TOO_MANY_TRIES,
                ) from None
            raise
        check_role(token.name, token.role, Role.VIEWER)
        await self._tokens.used(token)
        scope.setdefault("state", {})["caller"] = token


def _check_type(method: str, headers: Headers) -> None:
    said = headers.get("content-type")
    empty = headers.get("content-length", "0") == "0" and "transfer-encoding" not in headers
    if method not in WRITING or (said is None and empty):
        return
    if said is None or said.partition(";")[0].strip().lower() != JSON:
        raise Refused(
            f"Content-Type is {said or 'not given'}: send {JSON}", Code.UNSUPPORTED_MEDIA_TYPE
        )


def _is_streamed(scope: Scope, headers: Headers) -> bool:
    """Whether the handler reads the body itself, piece by piece: the files of an adapter."""
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    return (scope["method"], scope["path"], kind) == ("POST", UPLOADS, MULTIPART)


def _limit_of(path: str) -> int:
    if path == APPLY:
        return DOCUMENTS_LIMIT
    return REPORT_LIMIT if path.startswith(UPLOADS) and path.endswith("/evidence") else BODY_LIMIT


async def _read(headers: Headers, receive: Receive, limit: int) -> bytes:
    """The whole body. Raises `body-too-large`, at once where its length is told, and
    `body-too-slow`."""
    told = headers.get("content-length", "0")
    if not told.isdigit() or int(told) > limit:
        raise Refused(
            f"the body is {told} bytes long: at most {limit} are taken", Code.BODY_TOO_LARGE
        )
    body = bytearray()
    try:
        async with asyncio.timeout(BODY_TIME.total_seconds()):
            while True:
                message = await receive()
                body += message.get("body", b"")
                if len(body) > limit:
                    raise Refused(f"the body is longer than {limit} bytes", Code.BODY_TOO_LARGE)
                if not message.get("more_body", False):
                    return bytes(body)
    except TimeoutError:
        raise Refused(
            f"the body did not come within {BODY_TIME.total_seconds():.0f} s: send it at once",
            Code.BODY_TOO_SLOW,
        ) from None


def _replay(body: bytes, receive: Receive) -> Receive:
    """The body as one message, then what else comes: the client's leaving."""
    messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def next_message() -> Message:
        return messages.pop() if messages else await receive()

    return next_message
