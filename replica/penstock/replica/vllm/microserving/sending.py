"""A worker's giving of KV: one thread for each request whose blocks go to another engine.

Blocks are sent from where they lie. They stay the request's until the thread has ended, but where
the request is preempted: then what was not sent is dropped, and sent again once it is computed.
"""

from __future__ import annotations

import contextlib
import logging
import socket
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from penstock.replica.vllm.microserving import sockets
from penstock.replica.vllm.microserving.frames import (
    MOST_BLOCKS,
    BadFrame,
    Blocks,
    End,
    Frame,
    Hello,
    Refused,
    Welcome,
)
from penstock.replica.vllm.microserving.orders import Target

log = logging.getLogger(__name__)

CONNECT_WITHIN: Final = 5.0
STALLS: Final = 10.0
"""Seconds for which a receiver may read nothing, or not answer."""

_YIELDS_WITHIN: Final = 0.1
_ENDS_WITHIN: Final = 1.0
_FRAME_BYTES: Final = 4 << 20

Pairs = list[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class _Part:
    """Blocks of one layer. `event`: of the device, after which they are computed."""

    layer: int
    pairs: Pairs
    event: Any = None


class _Refused(Exception):
    """The receiver takes nothing of this sender."""


class _Stopped(Exception):
    """What is sent is not wanted any more."""


class SendJob:
    """One request's KV on its way. Orders come from the engine's thread and never wait for the
    peer; `report` gets what came of it."""

    def __init__(
        self,
        memory: Any,
        target: Target,
        rank: int,
        report: Callable[[dict[str, Any]], None],
        exposed: Any = None,
    ) -> None:
        self._memory = memory
        self._target = target
        self._address = target.ranks[rank]
        self._report = report
        self._exposed = exposed
        self._parts: deque[_Part] = deque()
        self._turn = threading.Condition()
        self._ended = False
        self._reading = False  # blocks of the request
        self._connection: socket.socket | None = None
        self._stopped = ""
        self.running = True
        self._bytes = 0
        self._began = 0.0
        threading.Thread(target=self._run, name="kv-send", daemon=True).start()

    def add(self, layer: int, pairs: Pairs, event: Any = None) -> None:
        """These blocks of a layer are computed, or are once the event has come."""
        with self._turn:
            if pairs:
                self._parts.append(_Part(layer, pairs, event))
            self._turn.notify_all()

    def end(self) -> None:
        """That was all."""
        with self._turn:
            self._ended = True
            self._turn.notify_all()

    def stop(self, why: str) -> None:
        """Sends no more."""
        with self._turn:
            self._stopped = self._stopped or why
            if self._connection is not None:
                with contextlib.suppress(OSError):
                    self._connection.shutdown(socket.SHUT_RDWR)
            self._turn.notify_all()

    def rewind(self) -> None:
        """Forgets what was not sent yet, and waits for all of it anew. When it returns, no block is
        being read: a peer that does not take what is under way within a moment loses the transfer.
        """
        with self._turn:
            self._parts.clear()
            self._ended = False
            if self._turn.wait_for(self._rests, _YIELDS_WITHIN):
                return
        self.stop("its request was preempted, and the receiver did not read")
        with self._turn:
            if not self._turn.wait_for(self._rests, _ENDS_WITHIN):
                log.error("a transfer does not stop; what it sends last may be wrong")

    def _rests(self) -> bool:
        return not self._reading

    def _run(self) -> None:
        error, cause = "", "transfer"
        try:
            self._send()
        except _Refused as failure:
            error, cause = f"the receiver: {failure}", "no_lease"
        except (OSError, BadFrame, _Stopped) as failure:
            error = self._stopped or str(failure) or type(failure).__name__
        except Exception as failure:
            log.exception("KV cannot be sent")
            error = type(failure).__name__
        seconds = time.monotonic() - self._began if self._began else 0.0
        told = {
            "error": cause if error else "",
            "message": error,
            "bytes": self._bytes,
            "seconds": seconds,
        }
        with self._turn:
            self._reading = self.running = False
            self._turn.notify_all()
        self._report({"sent": self._target.job, **told})

    def _send(self) -> None:
        target = self._target
        with contextlib.closing(socket.create_connection(self._address, CONNECT_WITHIN)) as peer:
            sockets.tuned(peer, STALLS)
            with self._turn:
                self._connection = peer
                self._unless_stopped()
            memory = self._exposed.told() if self._exposed else b""
            sockets.send(peer, Hello(target.lease, target.nonce, target.fingerprint, memory))
            self._welcome(peer)
            while (part := self._next()) is not None:
                self._began = self._began or time.monotonic()
                self._send_part(peer, part)
            self._unless_stopped()
            sockets.send(peer, End())
            self._welcome(peer)

    def _next(self) -> _Part | None:
        """The next part; none: all have been sent."""
        with self._turn:
            self._reading = False
            self._turn.notify_all()
            self._turn.wait_for(lambda: self._parts or self._ended or self._stopped)
            self._unless_stopped()
            if not self._parts:
                return None
            self._reading = True
            return self._parts.popleft()

    def _send_part(self, peer: socket.socket, part: _Part) -> None:
        if part.event is not None:
            part.event.synchronize()
        most = max(1, min(MOST_BLOCKS, _FRAME_BYTES // self._memory.block_bytes))
        for begin in range(0, len(part.pairs), most):
            self._unless_stopped()
            pairs = part.pairs[begin : begin + most]
            blocks, places = zip(*pairs, strict=True)
            if self._exposed:
                # The receiver fetches them, and counts them once it has heard more after that.
                sockets.send(peer, Blocks(part.layer, places, blocks))
                self._welcome(peer)
            else:
                parts = self._memory.outgoing(part.layer, blocks)
                sockets.send(peer, Blocks(part.layer, places), parts)
            self._bytes += len(pairs) * self._memory.block_bytes

    def _welcome(self, peer: socket.socket) -> None:
        frame = self._answer(peer)
        if isinstance(frame, Refused):
            raise _Refused(frame.reason)
        if not isinstance(frame, Welcome):
            raise BadFrame("no answer to a hello")

    def _answer(self, peer: socket.socket) -> Frame:
        if self._exposed:
            self._exposed.wait_for(peer, STALLS)
        return sockets.receive(peer, until=time.monotonic() + STALLS)

    def _unless_stopped(self) -> None:
        if self._stopped:
            raise _Stopped(self._stopped)
