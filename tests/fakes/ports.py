"""Ports for processes that are told where to listen.

They lie below those that the system hands out by itself, and each of pytest's workers has a range
of its own: so between the moment a port is found free and the moment the process binds it, neither
an outgoing connection nor the test beside it takes it.
"""

from __future__ import annotations

import contextlib
import os
import random
import socket
from collections.abc import Iterator

_FIRST, _RANGE, _WORKERS = 20000, 3000, 4  # up to 32000; the system's own begin at 32768


def free_ports(count: int) -> list[int]:
    """Loopback ports that nobody listens on at this moment, all different."""
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % _WORKERS
    first = _FIRST + worker * _RANGE
    with contextlib.ExitStack() as bound:
        free = _binding(random.sample(range(first, first + _RANGE), _RANGE), bound)
        return [next(free) for _ in range(count)]


def free_neighbours() -> int:
    """The first of two such ports that follow each other."""
    for first in free_ports(50):
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", first + 1))
            return first
    raise AssertionError("no two free ports follow each other")


def free_address() -> str:
    """`127.0.0.1:PORT` with such a port."""
    return f"127.0.0.1:{free_ports(1)[0]}"


def _binding(ports: list[int], bound: contextlib.ExitStack) -> Iterator[int]:
    for port in ports:
        probe = bound.enter_context(socket.socket())
        with contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            yield port


__all__ = ["free_address", "free_neighbours", "free_ports"]
