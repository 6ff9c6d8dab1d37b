"""The gateway as a client of the OpenAI API sees it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Self

import httpx

from penstock.control.errors import Unauthenticated, Unavailable
from penstock.control.state.rollout.trial import Question

TIMEOUT = timedelta(seconds=30)


class GatewayClient:
    """Requests to one gateway, without a key. Use as a context manager.

    Each raises `Unavailable`, or `Unauthenticated` where a key is asked for.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        # The gateway is this machine's own, and its certificate may be for a name that leads
        # elsewhere; nothing secret is sent to it.
        self._http = httpx.AsyncClient(
            base_url=url, timeout=TIMEOUT.total_seconds(), trust_env=False, verify=False
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._http.aclose()

    async def models(self) -> list[str]:
        """The names that clients may say as "model"."""
        reply = await self._call("GET", "/v1/models")
        return [str(model["id"]) for model in reply["data"]]

    async def ready(self) -> bool:
        """Whether it has a replica that can be sent requests; needs no key."""
        return (await self._reply("GET", "/readyz")).is_success

    async def ask(self, question: Question) -> None:
        """Has a model compute an answer, which nobody reads."""
        headers = {"content-type": "application/json"}
        await self._call("POST", question.path, content=question.body, headers=headers)

    async def _call(self, method: str, path: str, **more: Any) -> dict[str, Any]:
        reply = await self._reply(method, path, **more)
        try:
            body: dict[str, Any] = reply.json()
        except ValueError as error:
            raise Unavailable(f"the gateway at {self._url} answers no JSON: {error}") from error
        if not reply.is_success:
            message = body.get("error", {}).get("message", reply.text[:200])
            unusable = Unauthenticated if reply.status_code == 401 else Unavailable
            raise unusable(f"the gateway answers {reply.status_code}: {message}")
        return body

    async def _reply(self, method: str, path: str, **more: Any) -> httpx.Response:
        try:
            return await self._http.request(method, path, **more)
        except httpx.HTTPError as error:
            reason = str(error) or type(error).__name__
            raise Unavailable(f"the gateway at {self._url} does not answer: {reason}") from error
