"""The openai SDK as a client of one endpoint: the only file that knows it.

One attempt each, no redirects, and what comes is given as it comes. Nothing of what the SDK says of
a failure is passed on but its kind: its texts may quote headers.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import AsyncIterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final

import httpx2
import openai

from penstock.replica.providers.retries import told_wait_ms
from penstock.replica.providers.values import Broken, TooLarge

VERSION: Final = openai.__version__

_RAW: Final = {"X-Stainless-Raw-Response": "stream"}
_WRITE_TIMEOUT_S: Final = 30.0
_MOST_OF_ERROR: Final = 1 << 20
# They would log headers and bodies.
for _name in ("openai", "httpx", "httpx2", "httpcore", "httpcore2"):
    logging.getLogger(_name).setLevel(logging.WARNING)


class Refused(Exception):
    """The provider answered with a status that is no success."""

    def __init__(self, status: int, body: object, retry_after_ms: int, request_id: str) -> None:
        super().__init__(f"status {status}")
        self.status = status
        self.body = body
        self.retry_after_ms = retry_after_ms
        self.request_id = request_id


class _Bounded(httpx2.AsyncByteStream):
    """A body that ends with an error where it is too large."""

    def __init__(self, stream: Any, most: int) -> None:
        self._stream = stream
        self._most = most

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for portion in self._stream:
            size += len(portion)
            if size > self._most:
                raise httpx2.ReadError("the body is too large")
            yield portion

    async def aclose(self) -> None:
        await self._stream.aclose()


async def _look_at_head(response: httpx2.Response) -> None:
    """The SDK reads an error's body whole, and whatever is compressed grows as it is read."""
    if response.headers.get("content-encoding", "identity") != "identity":
        raise httpx2.DecodingError("compressed, which nobody asked for")
    if not response.is_success:
        response.stream = _Bounded(response.stream, _MOST_OF_ERROR)


class Reply:
    """An answer whose head has come."""

    def __init__(self, response: Any) -> None:
        self._response = response
        self.request_id: str = response.headers.get("x-request-id") or ""
        content_type: str = response.headers.get("content-type") or ""
        self.is_json = content_type.startswith("application/json")

    async def portions(self, most: int) -> AsyncIterator[bytes]:
        """Its body as it comes. Raises `Broken`, and `TooLarge` after `most` bytes."""
        size = 0
        try:
            async for portion in self._response.iter_bytes():
                size += len(portion)
                if size > most:
                    break
                yield portion
        except Exception as error:
            raise Broken(_kind(error)) from None
        if size > most:
            raise TooLarge

    async def whole(self, most: int) -> bytes:
        """Its body. Raises `Broken`, and `TooLarge` after `most` bytes."""
        return b"".join([portion async for portion in self.portions(most)])


class Client:
    """A client of the endpoint at `base_url`. `connect_timeout`: in seconds; how long an answer may
    be silent is for whoever reads it."""

    def __init__(self, base_url: str, organization: str, connect_timeout: float) -> None:
        timeout = openai.Timeout(
            None, connect=connect_timeout, write=_WRITE_TIMEOUT_S, pool=connect_timeout
        )
        self._client = openai.AsyncOpenAI(
            api_key="none",  # each request brings its own
            base_url=base_url,
            timeout=timeout,
            max_retries=0,
            http_client=openai.DefaultAsyncHttpxClient(
                timeout=timeout,
                follow_redirects=False,
                event_hooks={"response": [_look_at_head]},
            ),
        )
        # The SDK would send headers of the environment (OPENAI_CUSTOM_HEADERS) to any base URL.
        self._client._custom_headers = {}
        # Not those of the environment.
        self._headers: dict[str, Any] = {
            "OpenAI-Organization": organization or openai.Omit(),
            "OpenAI-Project": openai.Omit(),
            "Accept-Encoding": "identity",
        }

    @contextlib.asynccontextmanager
    async def opened(
        self, path: str, body: Mapping[str, Any], headers: Mapping[str, str]
    ) -> AsyncIterator[Reply]:
        """Sends a request; the answer, closed at the end. Raises `Refused` and `Broken`."""
        named = {name.lower() for name in headers}
        keyless = {} if "authorization" in named else {"Authorization": openai.Omit()}
        options: Any = {
            "headers": {**self._headers, **keyless, **headers, **_RAW},
            "follow_redirects": False,
        }
        try:
            response: Any = await self._client.post(
                path, cast_to=object, body=body, options=options
            )
        except openai.APIStatusError as error:
            headers_of = error.response.headers
            raise Refused(
                error.status_code,
                error.body,
                told_wait_ms(headers_of, datetime.now(UTC)),
                headers_of.get("x-request-id") or "",
            ) from None
        except openai.APIConnectionError as error:
            raise _broken(error.__cause__ or error) from None
        except Exception as error:
            raise _broken(error) from None
        try:
            yield Reply(response)
        finally:
            await response.close()

    async def close(self) -> None:
        """Closes its connections."""
        await self._client.close()


_KINDS: Final = {
    "ConnectError": "there is no connection",
    "ConnectTimeout": "there was no connection in time",
    "PoolTimeout": "all connections are in use",
    "WriteTimeout": "the request could not be written in time",
    "ReadError": "the connection broke",
    "WriteError": "the connection broke",
    "RemoteProtocolError": "the connection broke",
    "DecodingError": "the answer is compressed, which nobody asked for",
}


_UNSENT: Final = ("ConnectError", "ConnectTimeout", "PoolTimeout", "ProxyError")


def _broken(error: BaseException) -> Broken:
    """Before an answer came."""
    return Broken(_kind(error), sent=type(error).__name__ not in _UNSENT)


def _kind(error: BaseException) -> str:
    if "CERTIFICATE_VERIFY_FAILED" in str(error):
        return "its certificate is not trusted"
    name = type(error).__name__
    return _KINDS.get(name, f"the request could not be made ({name})")
