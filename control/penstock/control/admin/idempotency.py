"""Idempotency-Key: a POST that is sent again, because its answer was lost, acts once.

The first answer to a key of a caller is kept and given again. A mark of the key is stored in the
transaction of the change itself, so there is no moment in which the change is made and the key is
not known; the answer follows. What is left where the head ends between the two says so.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

from fastapi import Request, Response
from pydantic import TypeAdapter, ValidationError

from penstock.control.admin.deferred_route import DeferredRoute
from penstock.control.admin.middleware import MULTIPART
from penstock.control.admin.problems import explained
from penstock.control.errors import Code, InvalidInput, PenstockError, Unavailable
from penstock.control.managers.cluster_store import HEAD, ClusterStore
from penstock.control.state.tenancy.tokens import Token
from penstock.control.store.store import IDEMPOTENCY, Author, Change, Document, Key
from penstock.control.supervision.clock import Clock

log = logging.getLogger(__name__)

HEADER: Final = "idempotency-key"
REPLAYED: Final = "idempotent-replayed"
LONGEST: Final = 255  # characters of a key
KEPT_FOR: Final = timedelta(hours=24)
MOST_KEPT: Final = 1000
MOST_BODY: Final = 64 << 10  # bytes of an answer that is kept
KEPT_HEADERS: Final = ("content-type", "etag", "location", "x-should-retry")
# Refusals of the handler itself. Whoever is refused before has begun nothing, and may mend it.
KEPT_REFUSALS: Final = (404, 409, 412)

Handler = Callable[[Request], Awaitable[Response]]
_TRUTH: Final = TypeAdapter(bool)


@dataclass(slots=True)
class Answers:
    """What was answered to keys: in memory, and in the store. One event loop."""

    cluster: ClusterStore
    clock: Clock
    _kept: dict[str, Document] | None = None  # by caller and key, oldest first; None: not read yet
    _under_way: set[str] = field(default_factory=set)
    _reading: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def once(self, request: Request, key: str, handle: Handler) -> Response:
        """The answer to the first request with this key of this caller. Raises `InvalidInput`, and
        `idempotency-key-in-flight` while there is none."""
        name = _name(request, key)
        asked = await _asked(request)
        kept = await self._read()
        if name in self._under_way:
            raise PenstockError(
                f"the first request with {HEADER} {key[:LONGEST]!r} is under way: send this one"
                " again in a second",
                Code.KEY_IN_FLIGHT,
            )
        if name in kept:
            return _replay(kept[name], asked)
        mark = {"asked": asked, "at": self.clock.now().isoformat()}
        self._under_way.add(name)
        try:
            return await self._first(request, name, mark, handle)
        except BaseException:
            self._kept = None  # the store knows whether the change was made
            raise
        finally:
            self._under_way.discard(name)

    async def _first(
        self, request: Request, name: str, mark: Document, handle: Handler
    ) -> Response:
        request.state.marks = (Change(Key(IDEMPOTENCY, name), mark), *self._outdated())
        try:
            response = await handle(request)
        except PenstockError as error:
            if error.code.status not in KEPT_REFUSALS:
                raise
            response = explained(error)
        await self._keep(name, {**mark, **_answer(response)})
        return response

    async def _keep(self, name: str, document: Document) -> None:
        outdated = self._outdated()
        kept = await self._read()
        kept[name] = document
        for change in outdated:
            kept.pop(change.key.name, None)
        changes = [Change(Key(IDEMPOTENCY, name), document), *outdated]
        try:
            await self.cluster.write(changes, Author(HEAD, "keep an answer"))
        except Unavailable as error:
            log.warning("the answer to an idempotency key is not stored: %s", error)

    def _outdated(self) -> Sequence[Change]:
        """What makes room for one more."""
        since = (self.clock.now() - KEPT_FOR).isoformat()
        kept = self._kept or {}
        surplus = len(kept) + 1 - MOST_KEPT
        return [
            Change(Key(IDEMPOTENCY, name), None)
            for number, (name, document) in enumerate(kept.items())
            if number < surplus or document["at"] < since
        ]

    async def _read(self) -> dict[str, Document]:
        async with self._reading:
            if self._kept is None:
                found = await self.cluster.documents(IDEMPOTENCY)
                self._kept = dict(sorted(found.items(), key=lambda each: each[1]["at"]))
        oldest = (self.clock.now() - KEPT_FOR).isoformat()
        for name in [n for n, document in self._kept.items() if document["at"] < oldest]:
            del self._kept[name]
        return self._kept


class ActsOnce(DeferredRoute):
    """A route whose POSTs take an Idempotency-Key."""

    def get_route_handler(self) -> Callable[[Request], Any]:
        """The handler, and what is known of the key before it."""
        handle = super().get_route_handler()
        if self.methods != {"POST"}:
            return handle

        async def once(request: Request) -> Response:
            keys = request.headers.getlist(HEADER)
            if not keys or _is_dry(request):
                return await handle(request)
            answers: Answers = request.app.state.answers
            return await answers.once(request, _checked(request, keys), handle)

        return once


def marks_of(request: Request) -> Sequence[Change]:
    """What is stored together with the change that this request asks for."""
    marks: Sequence[Change] = getattr(request.state, "marks", ())
    return marks


def _checked(request: Request, keys: Sequence[str]) -> str:
    """Raises `InvalidInput`."""
    key = keys[0].strip().strip('"')
    if len(keys) > 1 or not 0 < len(key) <= LONGEST or not key.isprintable():
        raise InvalidInput(f"{HEADER} is to be one text of 1 to {LONGEST} printable characters")
    if request.headers.get("content-type", "").startswith(MULTIPART):
        raise InvalidInput(
            f"files that are sent along take no {HEADER}: the same bytes again make nothing new"
        )
    return key


def _is_dry(request: Request) -> bool:
    try:
        return _TRUTH.validate_python(request.query_params.get("dry_run", False))
    except ValidationError:  # which the handler refuses
        return True


def _name(request: Request, key: str) -> str:
    caller: Token = request.state.caller
    return hashlib.sha256(f"{caller.id}\n{key}".encode()).hexdigest()


async def _asked(request: Request) -> str:
    """Equal for equal requests."""
    said = (request.method, request.url.path, request.url.query, request.headers.get("if-match"))
    return hashlib.sha256(repr(said).encode() + await request.body()).hexdigest()


def _answer(response: Response) -> Mapping[str, Any]:
    """What is kept of an answer: never a secret."""
    headers = {name: response.headers[name] for name in KEPT_HEADERS if name in response.headers}
    answer: dict[str, Any] = {"status": response.status_code, "headers": headers}
    body = getattr(response, "body", None)
    if response.headers.get("cache-control") == "no-store":
        return {**answer, "secret": True}
    if body is None or len(body) > MOST_BODY:
        return {}
    return {**answer, "body": bytes(body).decode()}


def _replay(kept: Document, asked: str) -> Response:
    """Raises `idempotency-key-reused`."""
    if kept["asked"] != asked:
        raise PenstockError(
            f"this {HEADER} came with another request before: take a new one for each thing that"
            " you ask for",
            Code.KEY_REUSED,
        )
    when = datetime.fromisoformat(kept["at"]).isoformat(timespec="seconds")
    response: Response
    if kept.get("secret"):
        at = kept["headers"].get("location", "")
        response = explained(
            PenstockError(
                f"this was done at {when}, and the secret was shown in that answer alone: if it is"
                f" lost, delete {at} and make another with a new {HEADER}",
                Code.SECRET_SHOWN_ONCE,
            )
        )
        response.headers["location"] = at
    elif "status" in kept:
        response = Response(kept["body"], kept["status"], kept["headers"])
    else:
        response = explained(
            PenstockError(
                f"this was done at {when}, and the answer was not kept: read what it changed",
                Code.ANSWER_NOT_KEPT,
            )
        )
    response.headers[REPLAYED] = "true"
    return response
