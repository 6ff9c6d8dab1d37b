"""Any OpenAI-compatible endpoint as a provider.

Settings: `base_url`, `api_key_env` or `api_key_file`, `organization`, `headers_file`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Final
from urllib.parse import urlsplit

from penstock.replica.providers import errors, openai_errors
from penstock.replica.providers.account import Account
from penstock.replica.providers.hosts import Hosts
from penstock.replica.providers.openai_answers import not_streamed, reader, whole
from penstock.replica.providers.openai_client import VERSION, Client, Refused, Reply
from penstock.replica.providers.openai_requests import PATHS, outgoing
from penstock.replica.providers.secrets import NoSecret, Secrets, scrubbed
from penstock.replica.providers.settings import Arguments, Common
from penstock.replica.providers.sizes import most_bytes
from penstock.replica.providers.sse import BadEvents, Events
from penstock.replica.providers.values import HEARD, Ask, Broken, Piece, Place, TooLarge
from penstock.replica.values import CannotLoad

_OPENAI: Final = "https://api.openai.com/v1"
_OTHERS: Final = ("AWS_", "HF_", "PENSTOCK_")
"""How variables begin that hold no key of such an endpoint: AWS's, the model hub's, our own."""
_NO_SECRETS: Final = ("X-Client-Request-Id", "traceparent")
_LAST_WORDS_S: Final = 0.2
"""How long the end of a stream that has said all is waited for: its connection serves others."""


@dataclass(frozen=True, slots=True)
class OpenAISettings:
    """Where the endpoint is, and where its secrets are."""

    base_url: str
    place: Place
    key: Callable[[], str] | None  # reads the key; none: none is sent
    headers: Callable[[], dict[str, str]] | None  # reads more headers
    organization: str


def read_openai(arguments: Arguments, secrets: Secrets, hosts: Hosts) -> OpenAISettings:
    """The endpoint's settings; its secrets have to be there. Raises `CannotLoad`."""
    variable, file = arguments.text("api_key_env"), arguments.text("api_key_file")
    headers_file = arguments.text("headers_file")
    if variable and file:
        raise CannotLoad("the openai engine takes api_key_env or api_key_file, not both")
    if variable.startswith(_OTHERS):
        raise CannotLoad(
            f"api_key_env is {variable}: variables of {'*, '.join(_OTHERS)}* are for others; name "
            "one that holds the key of this endpoint"
        )
    base_url = arguments.text("base_url", _OPENAI).rstrip("/")
    place = _place(base_url, hosts)
    key: Callable[[], str] | None = None
    if variable:
        key = partial(secrets.variable, variable)
    elif file:
        key = partial(secrets.file, file)
    headers = partial(secrets.headers, headers_file) if headers_file else None
    try:
        for read in (key, headers):
            if read is not None:
                read()
    except NoSecret as error:
        raise CannotLoad(f"the openai engine: {error}") from None
    return OpenAISettings(base_url, place, key, headers, arguments.text("organization"))


def _place(base_url: str, hosts: Hosts) -> Place:
    try:
        parts = urlsplit(base_url)
        host, port = parts.hostname, parts.port
    except ValueError:
        parts, host, port = urlsplit(""), None, None
    if parts.username is not None or parts.password is not None:
        raise CannotLoad("base_url holds a user or a password: name a secret by api_key_file")
    if parts.scheme not in ("http", "https") or not host or parts.query or parts.fragment:
        raise CannotLoad("base_url must be like https://api.example.com/v1, and nothing behind it")
    if not hosts.allow(host, resolve=True):
        raise CannotLoad(errors.host_not_allowed(host).failed.message)
    tls = parts.scheme == "https"
    return Place(host, port or (443 if tls else 80), tls)


class OpenAIProvider:
    """One model of one endpoint."""

    name = "openai"
    version = VERSION
    endpoints = tuple(PATHS)

    def __init__(self, settings: OpenAISettings, model: str, common: Common) -> None:
        self.place: Place | None = settings.place
        self._settings = settings
        self._model = model
        self._openai = settings.base_url == _OPENAI
        self._allowed = common.allowed
        self._client = Client(settings.base_url, settings.organization, common.connect_timeout)

    async def answer(self, ask: Ask, account: Account) -> AsyncGenerator[Piece, None]:
        """See `Provider`."""
        body = outgoing(ask, self._model, self._allowed, openai=self._openai)
        headers = self._headers(ask)
        clean = partial(scrubbed, secrets=_words(headers))
        try:
            path, most = PATHS[ask.call.path], most_bytes(ask)
            account.sent = True
            async with self._client.opened(path, body, headers) as reply:
                account.provider_request_id = reply.request_id
                if not ask.stream:
                    yield whole(ask, account, await reply.whole(most), clean)
                    return
                if reply.is_json:
                    raise not_streamed(await reply.whole(most), clean)
                async for piece in _streamed(reply, ask, account, clean, most):
                    yield piece
        except Refused as error:
            account.provider_request_id = error.request_id
            account.refused(error.status)
            raise openai_errors.refused(
                error.status, error.body, error.retry_after_ms, self._model, path, clean
            ) from None

    async def close(self) -> None:
        """See `Provider`."""
        await self._client.close()

    def _headers(self, ask: Ask) -> dict[str, str]:
        """Read anew for each call: a secret that was rotated counts from the next one on."""
        headers = {"X-Client-Request-Id": ask.call.request_id}
        if ask.call.traceparent:
            headers["traceparent"] = ask.call.traceparent
        try:
            if self._settings.key is not None:
                headers["Authorization"] = f"Bearer {self._settings.key()}"
            if self._settings.headers is not None:
                headers |= self._settings.headers()
        except NoSecret:
            raise errors.credentials() from None
        return headers


async def _streamed(
    reply: Reply, ask: Ask, account: Account, clean: openai_errors.Clean, most: int
) -> AsyncGenerator[Piece, None]:
    events, reading, portions = Events(), reader(ask, account, clean), reply.portions(most)
    try:
        async for portion in portions:
            piece = HEARD
            for name, data in events.feed(portion):
                for piece in reading.take(name, data):
                    yield piece
            if piece is HEARD:
                yield piece
            if reading.over:
                await _left(portions)
                return
        if rest := events.rest():
            for piece in reading.take(*rest):
                yield piece
    except BadEvents as error:
        raise errors.cut_short(f"The provider's stream is broken: {error}.") from None
    for piece in reading.end():
        yield piece


async def _left(portions: AsyncIterator[bytes]) -> None:
    """Nothing that comes, or does not, after the last event takes the answer back."""
    with suppress(TimeoutError, Broken, TooLarge):
        async with asyncio.timeout(_LAST_WORDS_S):
            async for _ in portions:
                pass


def _words(headers: dict[str, str]) -> tuple[str, ...]:
    """What of the headers is secret: all values, and what stands behind the key's scheme."""
    values = [value for name, value in headers.items() if name not in _NO_SECRETS]
    return tuple(word for value in values for word in (value, *value.split()[1:]) if word)
