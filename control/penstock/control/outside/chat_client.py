"""One question to the OpenAI API, and its answer as it comes."""

from __future__ import annotations

import json
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx

from penstock.control.errors import Unauthenticated, Unavailable
from penstock.control.outside.admin_transport import trusting

# Before the first token a long prompt is computed.
SILENCE = httpx.Timeout(5, read=600)
END = b"[DONE]"
LONGEST_ERROR = 500  # characters of an answer that is none


async def streamed(
    base_url: str, key: str, ca: Path | None, question: dict[str, Any]
) -> AsyncIterator[str]:
    """The words of the answer to a chat, piece by piece. Raises `Unavailable`, of that kind what
    the API says in place of an answer, and `Unauthenticated`."""
    headers = {"authorization": f"Bearer {key}"} if key else {}
    url = f"{base_url.rstrip('/')}/chat/completions"
    body = {**question, "stream": True}
    try:
        async with (
            httpx.AsyncClient(timeout=SILENCE, trust_env=False, verify=_trusted(ca)) as http,
            http.stream("POST", url, json=body, headers=headers) as reply,
        ):
            if not reply.is_success:
                raise _refusal(url, reply.status_code, await reply.aread())
            async for line in _lines(reply):
                event = line.removeprefix(b"data:").strip()
                if event == END:
                    return
                if event.startswith(b"{"):
                    yield _words(event)
            raise Unavailable(f"{url}: the answer broke off without a word")
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise Unavailable(f"{url}: {error or type(error).__name__}") from error


async def _lines(reply: httpx.Response) -> AsyncIterator[bytes]:
    """Of the answer; words may hold what else text knows as the end of a line."""
    rest = b""
    async for part in reply.aiter_bytes():
        *lines, rest = (rest + part).split(b"\n")
        for line in lines:
            yield line


def _words(event: bytes) -> str:
    try:
        told = json.loads(event)
        if "error" in told:
            raise Unavailable(f"the answer broke off: {told['error']['message']}")
        return "".join(each["delta"].get("content") or "" for each in told.get("choices", ()))
    except (ValueError, KeyError, TypeError, AttributeError):
        said = event[:LONGEST_ERROR].decode("utf-8", "replace")
        raise Unavailable(f"the answer broke off: {said}") from None


def _refusal(url: str, status: int, body: bytes) -> Exception:
    try:
        said = str(json.loads(body)["error"]["message"])
    except (ValueError, KeyError, TypeError):
        said = body[:LONGEST_ERROR].decode("utf-8", "replace")
    if status == httpx.codes.UNAUTHORIZED:
        return Unauthenticated(
            f"{url} wants a key: {said}; `penstock keys create` makes one, PENSTOCK_API_KEY says it"
        )
    return Unavailable(f"{url} answers {status}: {said}")


def _trusted(ca: Path | None) -> ssl.SSLContext:
    """Who signed the head's certificate may have signed the gateway's, beside all others."""
    context = trusting(None)
    if ca is not None:
        context.load_verify_locations(ca)
    return context
