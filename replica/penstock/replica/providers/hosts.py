"""Which hosts this node sends anything to.

A machine's metadata service hands out its cloud credentials to whoever asks from there, so its
addresses are allowed to nobody, under no name.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Iterator, Sequence
from typing import Final

from penstock.replica.values import CannotLoad

# Those that are not link-local: of AWS over IPv6, Alibaba, Azure.
_METADATA: Final = frozenset({"fd00:ec2::254", "100.100.100.200", "168.63.129.16"})


class Hosts:
    """Names of hosts, `*.example.com` for all below one; none at all: every host is allowed."""

    def __init__(self, patterns: Sequence[str] = ()) -> None:
        self._patterns = tuple(_plain(pattern) for pattern in patterns)
        for pattern in self._patterns:
            rest = pattern.removeprefix("*.")
            if not rest or set(rest) & set("*/@ ") or "://" in pattern:
                raise CannotLoad(
                    f"settings: --provider-hosts: {pattern!r} is no host: say api.example.com or "
                    "*.example.com"
                )

    def allow(self, host: str, *, resolve: bool = False) -> bool:
        """Whether something may be sent to this host. With `resolve` the name is looked up, which
        may take seconds; one that has no address now is judged by its name."""
        name = _plain(host)
        if any(_is_metadata(address) for address in _addresses(name, resolve=resolve)):
            return False
        return not self._patterns or any(_fits(name, pattern) for pattern in self._patterns)


def _addresses(name: str, *, resolve: bool) -> Iterator[str]:
    """Of a name, or of any way to write an address as a number."""
    try:
        found = socket.getaddrinfo(name, None, flags=0 if resolve else socket.AI_NUMERICHOST)
    except (OSError, UnicodeError):
        return
    for *_, address in found:
        yield str(address[0])


def _is_metadata(address: str) -> bool:
    parsed = ipaddress.ip_address(address.partition("%")[0])
    parsed = getattr(parsed, "ipv4_mapped", None) or parsed
    return parsed.is_link_local or str(parsed) in _METADATA


def _fits(name: str, pattern: str) -> bool:
    if pattern.startswith("*."):
        return name.endswith(pattern[1:]) and len(name) > len(pattern) - 1
    return name == pattern


def _plain(host: str) -> str:
    return host.strip().lower().removesuffix(".").removeprefix("[").removesuffix("]")
