"""HTTP to one head's admin API: its token, its certificate, and errors in words."""

from __future__ import annotations

import asyncio
import ssl
import time
import urllib.parse
import uuid
from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from pathlib import Path
from typing import Any, Self, TypeVar

import httpx
from pydantic import TypeAdapter, ValidationError

from penstock.control.errors import (
    BadDocuments,
    Code,
    Fault,
    InvalidInput,
    NoHeadAnswers,
    NotFound,
    SecretUnusable,
    Unauthenticated,
    Unavailable,
    invalid_setting,
)
from penstock.control.secrets_files import read_secret

TIMEOUT = timedelta(seconds=5)
AGAIN_FOR = timedelta(seconds=10)  # what was sent may have been done: the head that comes up knows
PAUSE = timedelta(seconds=0.25)
LOST = (httpx.ReadError, httpx.WriteError, httpx.RemoteProtocolError)
PAGE = 100  # entries of a list that are asked for at a time
T = TypeVar("T")


def token_in(file: Path) -> Callable[[], str]:
    """Reads the token anew for each call: a head that starts for the first time is yet to write it.

    What it returns raises `Unavailable` without the file, `SecretUnusable` for a bad one.
    """

    def read() -> str:
        try:
            return read_secret(file)
        except SecretUnusable as error:
            if not isinstance(error.__cause__, FileNotFoundError):
                raise
            raise Unavailable(
                f"no admin token in {file}: the head writes it to its data directory; name that "
                "with --data-dir, or a file with a token by --admin-token-file"
            ) from error

    return read


class AdminTransport:
    """Calls to one head. Use as a context manager; the resources are in the classes above this one.

    Each raises `Unavailable` when the head does not answer, `NotFound` and `InvalidInput` when it
    refuses, and what `token` raises. `ca`: a PEM file of who may have signed the head's
    certificate.
    """

    def __init__(self, url: str, token: Callable[[], str], *, ca: Path | None = None) -> None:
        self.url = url.rstrip("/")
        self._token = token
        # Whom the machine trusts takes 30 ms to read, and without TLS nobody is asked.
        try:
            self._http = httpx.AsyncClient(
                base_url=f"{self.url}/admin/v1",
                timeout=TIMEOUT.total_seconds(),
                trust_env=False,
                verify=trusting(ca) if ca or self.url.startswith("https:") else False,
            )
        except httpx.InvalidURL as error:
            raise invalid_setting(f"--admin is {url!r}: {error}") from error

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._http.aclose()

    async def pages_of(
        self, what: str, model: type[T], name: Callable[[T], str], **those: str | None
    ) -> list[T]:
        """Every one of a kind, or `those` of it, listed by `name`, a page at a time: a long list
        would hold up the head."""
        found: list[T] = []
        while True:
            params = {"limit": PAGE, **those, "after": name(found[-1]) if found else None}
            kind = list[model]  # type: ignore[valid-type]
            page = await self.get(kind, f"/{what}", params=params)
            found += page
            if len(page) != PAGE:
                return found

    async def answer(self, kind: type[T], method: str, path: str, **more: Any) -> T:
        """An answer that is a success, as a model."""
        return self.read(await self.call(method, path, **more), kind)

    async def get(self, kind: type[T], path: str, **more: Any) -> T:
        """What is there, as a model; `more` as httpx takes it."""
        return await self.answer(kind, "GET", path, **more)

    async def post(self, kind: type[T], path: str, **more: Any) -> T:
        """What came of it, as a model."""
        return await self.answer(kind, "POST", path, **more)

    async def put(self, kind: type[T], path: str, **more: Any) -> T:
        """What is there now, as a model."""
        return await self.answer(kind, "PUT", path, **more)

    def read(self, reply: httpx.Response, kind: type[T]) -> T:
        """An answer as a model."""
        try:
            return TypeAdapter(kind).validate_json(reply.content)
        except ValidationError as error:
            raise Unavailable(
                f"{self.url} answers, but not as a Penstock head of this version does: "
                f"{error.error_count()} wrong fields in {reply.request.url.path}"
            ) from error

    async def call(self, method: str, path: str, **more: Any) -> httpx.Response:
        """An answer that is a success. Parameters that are None or False are left out."""
        reply = await self._request(method, path, **more)
        self._check(reply)
        return reply

    async def download(self, path: str, **more: Any) -> AsyncIterator[bytes]:
        """A long answer, part by part: it is nowhere whole."""
        reply = await self._request("GET", path, stream=True, **more)
        try:
            if not reply.is_success:
                await reply.aread()
            self._check(reply)
            async for part in reply.aiter_bytes():
                yield part
        except httpx.HTTPError as error:
            raise Unavailable(f"the head at {self.url} broke off: {_reason(error)}") from error
        finally:
            await reply.aclose()

    def _check(self, reply: httpx.Response) -> None:
        if reply.is_success:
            return
        try:
            detail = str(reply.json()["detail"])
        except (ValueError, KeyError, TypeError):
            asked = f"{reply.request.method} {reply.request.url.path}"
            raise Unavailable(
                f"what answers at {self.url} is not a Penstock head: it says {reply.status_code} "
                f"to {asked}; name the head's address with --admin"
            ) from None
        if reply.status_code == httpx.codes.UNAUTHORIZED:
            raise Unauthenticated(f"the head at {self.url} does not take this token: {detail}")
        if reply.status_code == httpx.codes.NOT_FOUND:
            raise NotFound(detail)
        if faults := reply.json().get("faults"):
            conflict = reply.status_code == httpx.codes.CONFLICT
            raise BadDocuments(
                [Fault(f["document"], tuple(f["path"]), f["text"]) for f in faults],
                Code.CONFLICT if conflict else Code.INVALID,
            )
        if reply.is_client_error:
            raise InvalidInput(detail)
        raise Unavailable(f"the head at {self.url} answers {reply.status_code}: {detail}")

    async def _request(
        self, method: str, path: str, *, stream: bool = False, **more: Any
    ) -> httpx.Response:
        """Asks without a token where there is none: first of all one wants to know of the head."""
        missing, headers = None, dict(more.pop("headers", {}))
        params = {
            n: v for n, v in more.pop("params", {}).items() if v is not None and v is not False
        }
        try:
            headers["authorization"] = f"Bearer {self._token()}"
        except Unavailable as error:
            missing = error
        try:
            if method == "POST" and "content" not in more:
                headers["idempotency-key"] = str(uuid.uuid4())
            request = self._http.build_request(method, path, params=params, headers=headers, **more)
            reply = await self._sent(request, stream=stream)
        except (httpx.HTTPError, UnicodeError) as error:
            raise NoHeadAnswers(f"no head answers at {self.url}: {_reason(error)}") from error
        if missing and reply.status_code == httpx.codes.UNAUTHORIZED:
            await reply.aclose()
            raise missing
        return reply

    async def _sent(self, request: httpx.Request, *, stream: bool) -> httpx.Response:
        """The answer. A request with a key is sent again where the connection breaks before there
        is one, as when its head is restarted: whatever became of the first, it is done once."""
        until = 0.0  # never lost so far
        while True:
            try:
                return await self._http.send(request, stream=stream)
            except (*LOST, httpx.ConnectError) as error:
                if isinstance(error, LOST) and "idempotency-key" in request.headers and not until:
                    until = time.monotonic() + AGAIN_FOR.total_seconds()
                elif time.monotonic() > until:
                    raise
            await asyncio.sleep(PAUSE.total_seconds())


def quote(name: str) -> str:
    """A name as one part of a path. Raises `NotFound` for what is no part, and so nobody's name."""
    if name in ("", ".", "..") or "/" in name:
        raise NotFound(f"nothing is named {name!r}: `penstock status` shows the names")
    return urllib.parse.quote(name, safe="")


def trusting(ca: Path | None) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=str(ca) if ca else None)
    except OSError as error:  # of which SSLError is one
        reason = error.strerror if error.filename or error.errno else str(error)
        raise invalid_setting(
            f"--tls-ca is {str(ca)!r}, which holds no certificate that can be read: {reason}"
        ) from error


def _reason(error: Exception) -> str:
    if isinstance(error, httpx.TimeoutException):
        return "it does not say anything in time"
    if isinstance(error, httpx.RemoteProtocolError):
        return f"what listens there does not speak HTTP as a head does ({error})"
    if isinstance(error, httpx.ReadError):
        return "it hangs up without an answer"
    return str(error) or type(error).__name__
