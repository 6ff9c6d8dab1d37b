"""By which names the admin API may be called: what keeps pages in an operator's browser out. Pure.

A page can make its own name point here (DNS rebinding), and then the browser takes the API for a
part of that page. So a Host that is neither an address of ours nor a name that we were told is
refused, and so is an Origin that is not the Host itself.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from urllib.parse import urlsplit

from penstock.control.errors import Code, Refused
from penstock.control.settings import LOOPBACK

_AUTHORITY = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9_-]+(?:\.[a-z0-9_-]+)*)\.?(?::([0-9]{1,5}))?")


def check_host(host: str, own: str, allowed: Collection[str]) -> None:
    """Raises `misdirected`. `own`: the address that this connection reached."""
    name = _name(host)
    if name is None or name not in LOOPBACK | {bracketed(own), *(each.lower() for each in allowed)}:
        raise Refused(
            f"Host is {host!r}: this API answers to localhost and to its own address; "
            "start the head with --allow-host to add a name",
            Code.MISDIRECTED,
        )


def check_origin(origin: str, host: str, allowed: Collection[str]) -> None:
    """Raises `forbidden` for a page that does not come from here, nor from an allowed name."""
    authority = urlsplit(origin.lower()).netloc if "://" in origin else ""
    name = _name(authority)
    if name is None or (authority != host.lower() and name not in {a.lower() for a in allowed}):
        raise Refused(
            f"Origin is {origin!r}: pages from elsewhere may not use this API; start the head with "
            "--allow-host to allow those of a name",
            Code.FORBIDDEN,
        )


def bracketed(address: str) -> str:
    """An IP address as it stands in a Host header."""
    return f"[{address.lower()}]" if ":" in address else address.lower()


def _name(authority: str) -> str | None:
    found = _AUTHORITY.fullmatch(authority.lower())
    return found.group(1) if found else None
