"""Listening sockets, and a clear word where an address is taken."""

from __future__ import annotations

import socket

from penstock.control.errors import AddressTaken, invalid_setting
from penstock.control.settings import split_address


def listen(host: str, port: int, *, flag: str) -> socket.socket:
    """A bound TCP socket, not listening yet; raises AddressTaken, naming the flag."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    # What it accepts has this from it. An answer is two writes, its head and its body: without it
    # the body waits until the client has acknowledged the head, which takes it 40 ms.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    try:
        listener.bind((host.strip("[]"), port))
    except OSError as error:
        listener.close()
        raise AddressTaken(
            f"cannot listen on {host}:{port}: {error.strerror or error}; stop what listens there, "
            f"or pass another {flag}"
        ) from error
    return listener


def check_free(host: str, port: int, *, flag: str) -> None:
    """Raises AddressTaken before gRPC, which says so less clearly, finds out."""
    listen(host, port, flag=flag).close()


def outgoing_address(address: str) -> str:
    """The address of this machine that leads to "host:port"; nothing is sent. Raises
    `invalid-setting` where no way leads there."""
    host, port = split_address(address, flag="--head")
    try:
        found = socket.getaddrinfo(host.strip("[]"), port, type=socket.SOCK_DGRAM)
        family, kind, _, _, where = found[0]
        with socket.socket(family, kind) as probe:
            probe.connect(where)
            mine = str(probe.getsockname()[0])
    except OSError as error:
        raise invalid_setting(
            f"--head is {address}: no way leads there from this machine ({error.strerror or error})"
        ) from error
    return f"[{mine}]" if ":" in mine else mine
