"""The gateway as a client of the OpenAI API sees it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Self

import httpx

from penstock.control.errors import Unavailable

TIMEOUT = timedelta(seconds=30)


class GatewayClient:
    """Requests to one gateway. Use as a context manager. Each raises `Unavailable`."""

    def __init__(self, url: str) -> None:
        self._url = url
        # The gateway is this machine's own, and its certificate may be for a name that leads
        # elsewhere; nothing secret is sent to it.
        self._http = httpx.AsyncClient(
            base_url=f"{url}/v1", timeout=TIMEOUT.total_seconds(), trust_env=False, verify=False
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._http.aclose()

    async def models(self) -> list[str]:
        """The names that clients may say as "model"."""
        reply = await self._call("GET", "/models")
        return [str(model["id"]) for model in reply["data"]]

    async def ask(self, model: str) -> None:
        """One token, generated for real."""
        await self._call(
            "POST", "/completions", json={"model": model, "prompt": "Hello", "max_tokens": 1}
        )

    async def _call(self, method: str, path: str, **more: Any) -> dict[str, Any]:
        try:
            reply = await self._http.request(method, path, **more)
            body: dict[str, Any] = reply.json()
        except (httpx.HTTPError, ValueError) as error:
            reason = str(error) or type(error).__name__
            raise Unavailable(f"the gateway at {self._url} does not answer: {reason}") from error
        if not reply.is_success:
            message = body.get("error", {}).get("message", reply.text[:200])
            raise Unavailable(f"the gateway answers {reply.status_code}: {message}")
        return body
