"""Where a node agent listens, and where it says that it is reached. Pure, but for the question
which address of this machine leads to the head.

A head on another machine cannot come back to a loopback address, so none is ever offered to it.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable
from dataclasses import dataclass

from penstock.control.errors import invalid_setting
from penstock.control.settings import split_address

LOOPBACK = "127.0.0.1"
ANY_PORT = ":0"


@dataclass(frozen=True, slots=True)
class NodeAddresses:
    """What becomes of --listen and --host; IPv6 hosts stand in brackets."""

    listen: str  # host:port
    host: str  # where replicas are reached, and the agent where it listens on every interface


def node_addresses(
    head: str, listen: str, host: str, outgoing: Callable[[str], str]
) -> NodeAddresses:
    """The addresses of a node; an empty `listen` or `host` was left open by the user.

    `outgoing` tells which address of this machine leads to a "host:port". Raises `invalid-setting`
    where the head could not come back.
    """
    if host and listen and not is_loopback(host) and not is_loopback(_host_of(listen)):
        return NodeAddresses(listen, host)
    mine = outgoing(head)
    if not is_loopback(mine):
        for flag, given in (("--listen", _host_of(listen) if listen else ""), ("--host", host)):
            if given and is_loopback(given):
                raise invalid_setting(
                    f"{flag} is {listen if flag == '--listen' else host}, which the head at {head}"
                    f" cannot reach: leave it out, then {mine} is taken, or name an address of"
                    " this machine"
                )
    return NodeAddresses(listen or f"{mine}{ANY_PORT}", host or _offered(listen, mine))


def advertised(listen_host: str, host: str) -> str:
    """The host under which the agent is reached that listens on `listen_host`."""
    return host if is_wildcard(listen_host) else listen_host


def _offered(listen: str, mine: str) -> str:
    named = _host_of(listen) if listen else ""
    return named if named and not is_wildcard(named) else mine


def _host_of(address: str) -> str:
    return split_address(address, flag="--listen")[0]


def is_loopback(host: str) -> bool:
    """Whether a host, IPv6 in brackets or not, is on the machine of who asks it."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


def is_wildcard(host: str) -> bool:
    """Whether a host means every interface."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_unspecified
    except ValueError:
        return False
