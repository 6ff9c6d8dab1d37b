"""Asks gateways over HTTP whether they live."""

from __future__ import annotations

from datetime import timedelta

import httpx


class HttpLivenessProbe:
    """GET /livez, on a new connection each time: accepting counts too. Close it at the end."""

    def __init__(self, timeout: timedelta = timedelta(seconds=1)) -> None:
        limits = httpx.Limits(max_keepalive_connections=0)
        self._client = httpx.AsyncClient(
            timeout=timeout.total_seconds(), limits=limits, trust_env=False
        )

    async def alive(self, address: str) -> bool:
        """Whether /livez at this address answered 200 in time."""
        try:
            reply = await self._client.get(f"http://{address}/livez")
        except httpx.HTTPError:
            return False
        return reply.status_code == httpx.codes.OK

    async def close(self) -> None:
        """Lets go of the client."""
        await self._client.aclose()
