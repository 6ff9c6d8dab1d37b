"""Listening sockets, and a clear word where an address is taken."""

from __future__ import annotations

import socket

from penstock.control.errors import AddressTaken


def listen(host: str, port: int, *, flag: str) -> socket.socket:
    """A bound TCP socket, not listening yet; raises AddressTaken, naming the flag."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
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
