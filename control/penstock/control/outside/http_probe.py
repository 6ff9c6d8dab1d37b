"""Asks gateways over HTTP whether they live."""

from __future__ import annotations

from datetime import timedelta

import httpx


class HttpLivenessProbe:
    """GET /livez, on a new connection each time: accepting counts too. Close it at the end."""

    def __init__(self, timeout: timedelta = timedelta(seconds=1)) -> None:
        limits = httpx.Limits(max_keepalive_connections=0)
        # A certificate says nothing of a gateway's life: it may be for a name that leads elsewhere.
        self._client = httpx.AsyncClient(
            timeout=timeout.total_seconds(), limits=limits, trust_env=False, verify=False
        )

    async def alive(self, address: str, *, tls: bool = False) -> bool:
        """Whether /livez at this address answered 200 in time, over TLS where that is spoken."""
        try:
            reply = await self._client.get(f"{'https' if tls else 'http'}://{address}/livez")
        except httpx.HTTPError:
            return False
        return reply.status_code == httpx.codes.OK

    async def close(self) -> None:
        """Lets go of the client."""
        await self._client.aclose()
