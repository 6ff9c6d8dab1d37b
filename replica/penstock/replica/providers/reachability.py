"""Whether a provider takes connections. Nothing is sent: a probe that asks costs money."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import urllib.request
from urllib.parse import urlsplit

from penstock.replica.providers.hosts import Hosts
from penstock.replica.providers.values import Place
from penstock.replica.values import CannotLoad, EngineError


async def open_once(place: Place, within: float) -> None:
    """Opens a connection and closes it. `within`: seconds. Raises `EngineError`.

    Through a proxy, as the environment names it, this is the proxy's.
    """
    via = proxy_to(place) or place
    try:
        async with asyncio.timeout(within):
            _, writer = await asyncio.open_connection(
                via.host, via.port, ssl=_handshake() if via.tls else None
            )
    except TimeoutError:
        raise EngineError(f"{_named(via)} takes no connection within {within:g} s") from None
    except socket.gaierror as error:
        raise EngineError(f"{_named(via)} is not known: {error.strerror}") from None
    except ssl.SSLError as error:
        raise EngineError(f"{_named(via)} does not speak TLS: {error.reason}") from None
    except OSError as error:
        raise EngineError(f"{_named(via)} takes no connection: {error.strerror}") from None
    writer.close()
    with contextlib.suppress(OSError):
        writer.transport.abort()


def proxy_to(place: Place) -> Place | None:
    """The proxy that requests to this place go through; none: they go there themselves."""
    if urllib.request.proxy_bypass(f"{place.host}:{place.port}"):
        return None
    proxies = urllib.request.getproxies()
    proxy = proxies.get("https" if place.tls else "http") or proxies.get("all", "")
    parts = urlsplit(proxy if "://" in proxy else f"http://{proxy}")
    if not proxy or not parts.hostname:
        return None
    return Place(parts.hostname, parts.port or 80, tls=False)


def check_proxy(place: Place, hosts: Hosts) -> None:
    """Raises `CannotLoad` where requests would go by way of a host that is not allowed."""
    proxy = proxy_to(place)
    if proxy is not None and not hosts.allow(proxy.host):
        raise CannotLoad(
            f"requests to {place.host} would go through the proxy {proxy.host} of this process's "
            "environment, which --provider-hosts does not name: name it there, or name "
            f"{place.host} in NO_PROXY"
        )


def _handshake() -> ssl.SSLContext:
    """Trusts anybody: whom a request goes to is looked at when one goes there."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def _named(place: Place) -> str:
    return f"{place.host}:{place.port}"
