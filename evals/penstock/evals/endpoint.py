"""Endpoints that are asked over HTTP: where, with which key, and how one request goes."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

import httpx

from penstock.evals.errors import EvalError


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Who is asked, for which model, with which key."""

    url: str
    model: str
    key: str = field(default="", repr=False)

    @classmethod
    def of(cls, url: str, model: str, key: str) -> Endpoint:
        """What was told on a command line; with no model, the only one there. Raises
        `EvalError`."""
        url = at_url(url)
        return cls(url, model or only_model(url, key), key)

    def headers(self) -> dict[str, str]:
        """With the key, if there is one."""
        return bearer(self.key)

    def __str__(self) -> str:
        """As reports name it."""
        return f"{self.model} at {self.url}" if self.model else self.url


class Growing(Protocol):
    """A reply while it is read."""

    def feed(self, data: bytes, at: float) -> None:
        """The next bytes, with the seconds since the request was sent."""


Reply = TypeVar("Reply", bound=Growing)


@dataclass(frozen=True, slots=True)
class Posted(Generic[Reply]):
    """What became of one request."""

    seconds: float  # from sent to the end of the answer
    status: int | None = None  # none: there was no answer at all
    body: bytes = b""  # where the status is not 200
    reply: Reply | None = None  # where it is
    error: str = ""  # why there is no answer, or no whole one


async def post(
    http: httpx.AsyncClient,
    endpoint: Endpoint,
    path: str,
    body: Mapping[str, Any],
    reply_of: Callable[[Mapping[str, str]], Reply],
    *,
    timeout_s: float,
    headers: Mapping[str, str] | None = None,
) -> Posted[Reply]:
    """Sends one request and reads all that comes. Raises nothing for what goes wrong."""
    began, status, reply = time.perf_counter(), None, None
    try:
        async with http.stream(
            "POST",
            endpoint.url + path,
            json=body,
            headers={**endpoint.headers(), **(headers or {})},
            timeout=timeout_s,
        ) as answer:
            status = answer.status_code
            if status != 200:
                told = await answer.aread()
                return Posted(time.perf_counter() - began, status, told)
            reply = reply_of(answer.headers)
            async for data in answer.aiter_bytes():
                reply.feed(data, time.perf_counter() - began)
            return Posted(time.perf_counter() - began, status, reply=reply)
    except httpx.HTTPError as error:
        told_by = f"no answer: {error!r}"[:300]
        return Posted(time.perf_counter() - began, status, reply=reply, error=told_by)


def at_url(url: str) -> str:
    """An address as paths go behind it."""
    return url.rstrip("/").removesuffix("/v1")


def needs_trust(url: str) -> bool:
    """Whom the machine trusts takes 30 ms to read, and without TLS nobody is asked."""
    return not url.startswith("http:")


def bearer(key: str) -> dict[str, str]:
    """The header that shows a key; none without one."""
    return {"authorization": f"Bearer {key}"} if key else {}


def request(
    method: str, url: str, key: str = "", *, timeout: float, body: object = None
) -> httpx.Response:
    """One request by itself, with a JSON body if there is one. Raises `httpx.HTTPError`."""
    return httpx.request(
        method,
        url,
        json=body,
        headers=bearer(key),
        timeout=timeout,
        trust_env=False,
        verify=needs_trust(url),
    )


def served_models(url: str, key: str) -> list[str]:
    """The models that an endpoint says it serves. Raises `EvalError` where it does not answer."""
    try:
        reply = request("GET", f"{url}/v1/models", key, timeout=30)
        return [str(each["id"]) for each in reply.json()["data"]]
    except (httpx.HTTPError, ValueError, LookupError, TypeError) as error:
        raise EvalError(f"{url}/v1/models does not tell its models: {error!r}") from error


def only_model(url: str, key: str) -> str:
    """The model that an endpoint serves, adapters aside. Raises `EvalError` where there is not
    one."""
    names = served_models(url, key)
    deployments = [each for each in names if ":" not in each]
    if len(deployments) != 1:
        told = ", ".join(names) or "no model"
        raise EvalError(f"{url} serves {told}: say which by --primary-model and --candidate-model")
    return deployments[0]
