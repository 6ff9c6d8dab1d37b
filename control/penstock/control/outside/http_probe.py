"""Asks gateways over HTTP whether they live."""

from __future__ import annotations

import asyncio
import ssl
from datetime import timedelta

_REQUEST = b"GET /livez HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"


class HttpLivenessProbe:
    """GET /livez, on a new connection each time: accepting counts too. Twice a second for as long
    as there is a gateway, so without an HTTP client, which takes five times as long."""

    def __init__(self, timeout: timedelta = timedelta(seconds=1)) -> None:
        self._timeout = timeout
        # A certificate says nothing of a gateway's life: it may be for a name that leads elsewhere.
        self._trusting = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self._trusting.check_hostname = False
        self._trusting.verify_mode = ssl.CERT_NONE

    async def alive(self, address: str, *, tls: bool = False) -> bool:
        """Whether /livez at this address answered 200 in time, over TLS where that is spoken."""
        host, _, port = address.rpartition(":")
        context = self._trusting if tls else None
        try:
            async with asyncio.timeout(self._timeout.total_seconds()):
                reader, writer = await asyncio.open_connection(
                    host.strip("[]"), int(port), ssl=context
                )
                try:
                    writer.write(_REQUEST)
                    return (await reader.readline()).split(b" ")[1:2] == [b"200"]
                finally:
                    writer.transport.abort()
        except (OSError, TimeoutError, ValueError):
            return False
