"""Where a replica listens: at one address, or at the first free port of a range.

Trying is the only way that holds: what is free when one looks may be another's when one listens.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from penstock.replica.values import CannotLoad

_Server = TypeVar("_Server")


def served_at(listen: str, serve: Callable[[str], _Server]) -> _Server:
    """What `serve` makes of "host:port", or of one of "host:first-last". It raises `RuntimeError`
    where it cannot listen; where none can, this raises `CannotLoad`."""
    host, _, ports = listen.rpartition(":")
    first, dash, last = ports.partition("-")
    if not dash:
        try:
            return serve(listen)
        except RuntimeError as error:
            raise CannotLoad(str(error)) from None
    reason = ""
    for port in range(int(first), int(last) + 1):
        try:
            return serve(f"{host}:{port}")
        except RuntimeError as error:
            reason = str(error)
    raise CannotLoad(
        f"no port of {ports} is free on {host}: give the node agent more by --replica-ports (an"
        f" update needs one more), or have fewer replicas here; {reason}"
    )


def host_of(listen: str) -> str:
    """The host of an address that is listened at, as it stands there."""
    return listen.rpartition(":")[0]


def checked(listen: str) -> str:
    """Raises `ValueError` for a range that is none."""
    first, dash, last = listen.rpartition(":")[2].partition("-")
    if dash and not 0 < int(first) <= int(last) < 65536:
        raise ValueError(listen)
    return listen
