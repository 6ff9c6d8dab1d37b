"""Connections of a client that blocks, which another thread can shut down whatever they wait for.

A `Line` is what one call waits on. Connections are kept and used again, so a line is cut only
where its connection is still with the call that it belongs to.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from penstock.replica.providers.values import TooLarge


class Line:
    """One call's way out, and back for so many bytes; made by `Lines`."""

    def __init__(self, lock: threading.Lock, most: int) -> None:
        self._lock = lock
        self._most = most
        self._connection: Any = None
        self._socket: socket.socket | None = None
        self._is_cut = False

    def cut(self) -> None:
        """Ends whatever the call waits for, now and from now on. Callable from any thread."""
        with self._lock:
            self._is_cut = True
            if self._socket is not None and self._connection.line is self:
                # The socket's own: that of TLS would take away what the reader reads with.
                with suppress(OSError, TypeError):
                    socket.socket.shutdown(self._socket, socket.SHUT_RDWR)

    def take(self, connection: Any) -> None:
        """The call goes by this connection from now on. Raises where nobody wants it any more."""
        with self._lock:
            connection.line = self
            self._connection = connection
            used = getattr(connection, "sock", None)
            self._socket = getattr(used, "socket", used)  # of TLS within a proxy's TLS
            if self._is_cut:
                raise ConnectionAbortedError("the call was given up")

    def bounded(self, stream: Callable[..., Iterator[bytes]]) -> Callable[..., Iterator[bytes]]:
        """A response's `stream`, which raises `TooLarge` in the end."""

        def portions(*args: Any, **named: Any) -> Iterator[bytes]:
            size = 0
            for portion in stream(*args, **named):
                size += len(portion)
                if size > self._most:
                    raise TooLarge
                yield portion

        return portions

    def leave(self) -> None:
        """The call is over: what it went by is for others."""
        with self._lock:
            self._connection = self._socket = None


class Lines:
    """The lines of a client whose threads make one call at a time each."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._here = threading.local()

    def line(self, most: int) -> Line:
        """One for a call that is to be made, and answered with so many bytes at most."""
        return Line(self._lock, most)

    @contextmanager
    def on(self, line: Line) -> Iterator[None]:
        """What this thread connects to or asks in here goes by the line."""
        self._here.line = line
        try:
            yield
        finally:
            self._here.line = None
            line.leave()

    def watched(self, connection: Any) -> Any:
        """A class of connections like `http.client`'s whose use its lines know of."""
        lines = self

        class Watched(connection):  # type: ignore[misc]
            line: Line | None = None

            def connect(self) -> Any:
                connected = super().connect()
                lines._taken(self)
                return connected

            def request(self, *args: Any, **named: Any) -> Any:
                lines._taken(self)
                return super().request(*args, **named)

            def getresponse(self, *args: Any, **named: Any) -> Any:
                response = super().getresponse(*args, **named)
                if self.line is not None:
                    response.stream = self.line.bounded(response.stream)
                return response

        return Watched

    def _taken(self, connection: Any) -> None:
        line = getattr(self._here, "line", None)
        if line is not None:
            line.take(connection)
