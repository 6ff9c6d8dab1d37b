"""What the native side posts, handed to whoever answers for it."""

from __future__ import annotations

import asyncio
import enum
import logging
from collections.abc import Callable

from penstock.replica import _server

log = logging.getLogger(__name__)


class Kind(enum.IntEnum):
    """What an item is, with its payload; numbered as in native/inbox.h."""

    START = 0  # a call to answer: CallRequest
    CANCEL = 1  # its client is gone
    ROOM = 2  # its queue has room again
    HEALTH = 3  # a deep health check: HealthRequest
    ADAPTERS = 4  # AdaptersRequest
    DRAIN = 5  # DrainRequest
    EVENT = 6  # news of a call that this process made: CallEvent
    DIED = 7  # the native engine is dead: the reason
    NOTICE = 8  # something that an operator has to know: one line
    METRICS = 9  # MetricsRequest
    WANTED = 10  # calls wait for an adapter that is not loaded: CallRequest, its fields on adapters
    IDLE = 11  # an adapter that was asked about is used no longer
    SLEEP = 12  # SleepRequest
    WAKE = 13  # WakeRequest
    TOKENS = 14  # KeepRouterTokensRequest


Listener = Callable[[int, bytes], None]
"""Called on the loop with an item's key and payload; must not wait."""


class Inbox:
    """The native inbox on the running loop: batches in, one listener per kind."""

    def __init__(self) -> None:
        self.native = _server.Inbox()
        self._listeners: dict[int, Listener] = {Kind.NOTICE: _log_notice}

    def listen(self, kind: Kind, listener: Listener) -> None:
        """Items of `kind` go to `listener` from now on. Items nobody listens to are dropped."""
        self._listeners[kind] = listener

    def open(self) -> None:
        """Starts to hand items over."""
        asyncio.get_running_loop().add_reader(self.native.fileno(), self._read)

    def close(self) -> None:
        """Stops handing items over."""
        asyncio.get_running_loop().remove_reader(self.native.fileno())

    def _read(self) -> None:
        for kind, key, payload in self.native.drain():
            if listener := self._listeners.get(kind):
                try:
                    listener(key, payload)
                except Exception:
                    # The other items of the batch are of other calls.
                    log.exception("an item of the inbox broke", extra={"kind": kind})


def _log_notice(_: int, line: bytes) -> None:
    log.warning("%s", line.decode(errors="replace"))
