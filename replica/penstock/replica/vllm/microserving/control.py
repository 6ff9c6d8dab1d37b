"""What the scheduler's half and the workers' halves say to each other, beside the engine's steps.

One Unix socket for each worker, whose messages are whole or not there: sending one never waits, so
the engine's thread may. Each end has a thread that listens.
"""

from __future__ import annotations

import contextlib
import hmac
import json
import logging
import secrets
import socket
import threading
from collections.abc import Callable
from typing import Any, Final

log = logging.getLogger(__name__)

Message = dict[str, Any]
Heard = Callable[[Message], None]

_LARGEST: Final = 1 << 17
_ROOM: Final = 1 << 22
_PATIENCE: Final = 10.0


class Link:
    """One end. Messages may be sent from any thread."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _ROOM)

    def send(self, message: Message) -> bool:
        """False: the other end does not listen, or has gone."""
        text = json.dumps(message, separators=(",", ":")).encode()
        try:
            self._connection.send(text, socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL)
        except OSError as error:
            log.warning("a message between scheduler and worker is lost: %s", error)
            return False
        return True

    def receive(self) -> Message | None:
        """The next message; none: there is no other end any more."""
        text = self._connection.recv(_LARGEST)
        message: Message | None = json.loads(text) if text else None
        return message

    def close(self) -> None:
        """Both ends see it."""
        with contextlib.suppress(OSError):
            self._connection.shutdown(socket.SHUT_RDWR)
        self._connection.close()

    def listen(self, heard: Heard, name: str) -> None:
        """Has each message heard, in a thread of its own."""
        threading.Thread(target=self.follow, args=(heard,), name=name, daemon=True).start()

    def follow(self, heard: Heard) -> None:
        """Has each message heard, until there is no other end."""
        while True:
            try:
                message = self.receive()
            except (OSError, ValueError):
                message = None
            if message is None:
                return
            try:
                heard(message)
            except Exception:
                log.exception("a message between scheduler and worker is not understood")


class Worker:
    """The worker's end: waits for its scheduler, who knows the name and the secret."""

    def __init__(self, heard: Heard) -> None:
        self.name = f"penstock-kv-{secrets.token_hex(16)}"
        self.secret = secrets.token_hex(32)
        self._heard = heard
        self._link: Link | None = None
        self._server = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._server.bind(f"\0{self.name}")
        self._server.listen(1)
        threading.Thread(target=self._accept, name="kv-control", daemon=True).start()

    def send(self, message: Message) -> None:
        """Tells the scheduler."""
        if self._link is not None:
            self._link.send(message)

    def close(self) -> None:
        """Ends it, and its thread."""
        with contextlib.suppress(OSError):
            self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()
        if self._link is not None:
            self._link.close()

    def _accept(self) -> None:
        """Listens to the first that knows the secret."""
        while self._link is None:
            try:
                connection, _ = self._server.accept()
            except OSError:
                return
            link = Link(connection)
            try:
                connection.settimeout(_PATIENCE)
                first = link.receive()
                connection.settimeout(None)
            except (OSError, ValueError):
                first = None
            if first and hmac.compare_digest(str(first.get("secret")), self.secret):
                self._link = link
            else:
                link.close()
        self._server.close()
        self._link.follow(self._heard)


def connected(name: str, secret: str) -> Link:
    """The scheduler's end. Raises `OSError`."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    connection.settimeout(_PATIENCE)
    connection.connect(f"\0{name}")
    connection.settimeout(None)
    link = Link(connection)
    link.send({"secret": secret})
    return link
