"""Frames and blocks over a socket whose every wait is bounded by its timeout."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterable, Sequence
from typing import Final

from penstock.replica.vllm.microserving.frames import HEADER, Frame, decoded, encoded, length

_BUFFER: Final = 4 << 20
_PARTS: Final = 256  # of one system call


def tuned(connection: socket.socket, timeout: float) -> socket.socket:
    """For few large messages, one side speaking at a time."""
    connection.settimeout(timeout)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for option in (socket.SO_SNDBUF, socket.SO_RCVBUF):
        connection.setsockopt(socket.SOL_SOCKET, option, _BUFFER)
    return connection


def send(connection: socket.socket, frame: Frame, parts: Iterable[memoryview] = ()) -> None:
    """Sends a frame and what follows it."""
    left = [memoryview(encoded(frame)), *parts]
    while left:
        sent = connection.sendmsg(left[:_PARTS])
        left = _after(left, sent)


def receive(connection: socket.socket, until: float = 0.0) -> Frame:
    """The next frame; `until`: by when all of it is to be here. Raises `BadFrame`, `OSError`."""
    header = bytearray(HEADER.size)
    fill(connection, [memoryview(header)], until)
    kind, size = length(bytes(header))
    body = bytearray(size)
    fill(connection, [memoryview(body)], until)
    return decoded(kind, bytes(body))


def fill(connection: socket.socket, parts: Sequence[memoryview], until: float = 0.0) -> None:
    """Reads until all of these are full."""
    left = [part for part in parts if len(part)]
    while left:
        if until:
            connection.settimeout(max(until - time.monotonic(), 0.001))
        got = connection.recvmsg_into(left[:_PARTS])[0]
        if not got:
            raise ConnectionError("the other side has gone")
        left = _after(left, got)


def _after(parts: list[memoryview], count: int) -> list[memoryview]:
    """What is left of the parts after so many bytes."""
    for at, part in enumerate(parts):
        if count < len(part):
            return [part[count:], *parts[at + 1 :]] if count else parts[at:]
        count -= len(part)
    return []
