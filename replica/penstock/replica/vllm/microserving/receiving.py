"""A worker's taking of KV: leases that its scheduler opens, and peers that write into them.

Bytes are read straight into the leased blocks, and only by this side's own act: once a lease is
closed and none of its readers is inside a read, nothing comes any more, and the scheduler is told.
Threads: one that accepts, one for each peer. Peers that have not shown the nonce of a lease yet are
counted apart from those that write: a new one takes the place of the oldest.
"""

from __future__ import annotations

import contextlib
import hmac
import logging
import socket
import threading
import time
from collections.abc import Callable
from typing import Any, Final

from penstock.replica.vllm.microserving import sockets
from penstock.replica.vllm.microserving.arrivals import Arrivals
from penstock.replica.vllm.microserving.frames import (
    BadFrame,
    Blocks,
    End,
    Hello,
    Refused,
    Welcome,
)
from penstock.replica.vllm.microserving.leases import LONGEST

log = logging.getLogger(__name__)

MOST_PEERS: Final = 64  # that write
MOST_UNPROVEN: Final = 64  # that have not shown a nonce
MOST_WRITERS: Final = 4  # of one lease
HELLO_WITHIN: Final = 5.0
_LEASE_WITHIN: Final = 1.0
_SEND_WITHIN: Final = 5.0
_RENEWALS: Final = 5  # in the time of a lease, at most
_AGAIN_S: Final = 0.2  # after a peer that could not be taken: out of files, threads

Tell = Callable[[dict[str, Any]], None]


class Written:
    """A lease as its worker sees it. Its lock is held for moments only."""

    def __init__(self, order: dict[str, Any], layers: int) -> None:
        self.seq_id: str = order["open"]
        self.nonce = bytes.fromhex(order["nonce"])
        self.fingerprint = bytes.fromhex(order["fingerprint"])
        self.ttl: float = order["ttl"]
        self.blocks: list[int] = []
        self.count: int = order["count"]
        self.arrivals = Arrivals(layers, self.count)
        self.open = True
        self.lock = threading.Lock()
        self.peers: set[socket.socket] = set()
        self.bytes = 0
        self.began = self.ended = 0.0
        self.told = 0.0

    def says(self, what: str, **more: Any) -> dict[str, Any]:
        """A message of it to the scheduler, which may have had others of this name."""
        return {what: self.seq_id, "nonce": self.nonce.hex(), **more}


class Receiver:
    """Takes KV on a port of its own."""

    def __init__(self, memory: Any, host: str, tell: Tell, fetcher: Any = None) -> None:
        self._memory = memory
        self._tell = tell
        self._fetcher = fetcher
        self._leases: dict[str, Written] = {}
        self._changed = threading.Condition()
        self._unproven: dict[socket.socket, None] = {}  # the oldest first
        self._proving = threading.Lock()
        self._places = threading.Semaphore(MOST_PEERS)
        self._closed = False
        self.host = host.strip("[]")
        family = socket.AF_INET6 if ":" in self.host else socket.AF_INET
        self._server = socket.create_server((self.host, 0), family=family, backlog=MOST_PEERS)
        self.port = self._server.getsockname()[1]
        threading.Thread(target=self._accept, name="kv-accept", daemon=True).start()

    def close(self) -> None:
        """Takes no more, of anybody."""
        self._closed = True
        with contextlib.suppress(OSError):
            self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()
        for lease in tuple(self._leases.values()):
            self._end(lease)

    def open(self, order: dict[str, Any]) -> None:
        """A lease begins, or has more blocks: they come in pieces."""
        with self._changed:
            lease = before = self._leases.get(order["open"])
            if lease is None or lease.nonce.hex() != order["nonce"]:
                lease = self._leases[order["open"]] = Written(order, len(self._memory.layers))
            lease.blocks += order["blocks"]
            self._changed.notify_all()
        if before is not None and before is not lease:
            self._end(before)  # of the same name, and given up by the scheduler

    def end(self, seq_id: str, nonce: str) -> None:
        """A lease is to take no more; the scheduler is told as soon as it does not."""
        with self._changed:
            lease = self._leases.get(seq_id)
        if lease is None or lease.nonce.hex() != nonce:
            told = {"blocks": 0, "bytes": 0, "seconds": 0.0}
            return self._tell({"stopped": seq_id, "nonce": nonce, **told})
        self._end(lease)

    def _end(self, lease: Written) -> None:
        with lease.lock:
            lease.open = False
            for peer in lease.peers:
                _shut(peer)
            quiet = not lease.peers
        if quiet:
            self._stopped(lease)

    def _stopped(self, lease: Written) -> None:
        with self._changed:
            if self._leases.get(lease.seq_id) is not lease:
                return
            del self._leases[lease.seq_id]
        seconds = max(0.0, lease.ended - lease.began)
        told = {"blocks": lease.arrivals.prefix(), "bytes": lease.bytes, "seconds": seconds}
        self._tell(lease.says("stopped", **told))

    def _accept(self) -> None:
        while not self._closed:
            try:
                self._begin(self._server.accept()[0])
            except (OSError, RuntimeError) as error:
                if not self._closed:
                    log.warning("a peer that writes KV cannot be taken: %s", error)
                    time.sleep(_AGAIN_S)

    def _begin(self, peer: socket.socket) -> None:
        with self._proving:
            self._unproven[peer] = None
            if len(self._unproven) > MOST_UNPROVEN:
                oldest = next(iter(self._unproven))
                del self._unproven[oldest]
                _shut(oldest)
        try:
            threading.Thread(target=self._serve, args=(peer,), name="kv-peer", daemon=True).start()
        except RuntimeError:
            self._proven(peer)
            raise

    def _proven(self, peer: socket.socket) -> bool:
        """It counts no longer as one that has shown nothing; False: it was left for a newer one."""
        with self._proving:
            return self._unproven.pop(peer, peer) is None

    def _serve(self, peer: socket.socket) -> None:
        try:
            with contextlib.closing(sockets.tuned(peer, HELLO_WITHIN)):
                self._hear(peer)
        except (OSError, BadFrame) as error:
            log.info("a peer that writes KV has gone: %s", error)
        except Exception:
            log.exception("a peer that writes KV is left")
        finally:
            self._proven(peer)

    def _hear(self, peer: socket.socket) -> None:
        hello = sockets.receive(peer, until=time.monotonic() + HELLO_WITHIN)
        if not isinstance(hello, Hello):
            raise BadFrame("a peer that does not say who it is")
        lease = self._lease_for(hello)
        if lease is None:
            return sockets.send(peer, Refused("there is no such lease"))
        if not self._proven(peer):
            raise BadFrame("it took too long to say who it is")
        if not self._places.acquire(blocking=False):
            return sockets.send(peer, Refused("too many write here"))
        try:
            self._write(hello, lease, peer)
        finally:
            self._places.release()

    def _write(self, hello: Hello, lease: Written, peer: socket.socket) -> None:
        if not self._enter(lease, peer):
            return sockets.send(peer, Refused("there is no such lease"))
        try:
            with self._fetching(hello) as fetch:
                self._take(lease, peer, fetch)
        finally:
            with lease.lock:
                lease.peers.discard(peer)
                last = not lease.open and not lease.peers
            if last:
                self._stopped(lease)

    def _lease_for(self, hello: Hello) -> Written | None:
        """The lease that is meant, which may be told of a moment later than the sender is."""

        def there() -> bool:
            found = self._leases.get(hello.lease)
            return found is not None and len(found.blocks) >= found.count

        with self._changed:
            self._changed.wait_for(there, _LEASE_WITHIN)
            lease = self._leases.get(hello.lease)
        if lease is None or len(lease.blocks) != lease.count:
            return None
        known = hmac.compare_digest(lease.nonce, hello.nonce)
        return lease if known and lease.fingerprint == hello.fingerprint else None

    def _enter(self, lease: Written, peer: socket.socket) -> bool:
        with lease.lock:
            if not lease.open or len(lease.peers) >= MOST_WRITERS:
                return False
            lease.peers.add(peer)
            return True

    def _fetching(self, hello: Hello) -> contextlib.AbstractContextManager[Any]:
        """What fetches blocks of this peer; none: it sends them."""
        if self._fetcher is None:
            return contextlib.nullcontext()
        source: contextlib.AbstractContextManager[Any] = self._fetcher.source(hello.memory)
        return source

    def _take(self, lease: Written, peer: socket.socket, fetch: Any) -> None:
        peer.settimeout(LONGEST)  # the lease's end ends it sooner
        sockets.send(peer, Welcome())
        self._told(lease)
        fetched: Blocks | None = None
        while True:
            frame = sockets.receive(peer)
            if fetched is not None:  # whoever goes on had them still when they were fetched
                self._arrived(lease, fetched)
                fetched = None
            if isinstance(frame, End):
                return self._end_of(lease, peer)
            if not isinstance(frame, Blocks) or bool(frame.sources) != bool(fetch):
                raise BadFrame("neither blocks nor an end")
            lease.arrivals.check(frame)
            lease.began = lease.began or time.monotonic()
            blocks = [lease.blocks[place] for place in frame.places]
            if fetch:
                fetch(frame, blocks)
                sockets.send(peer, Welcome())
                fetched = frame
            elif self._taken(lease, frame, blocks, peer):
                self._arrived(lease, frame)

    def _end_of(self, lease: Written, peer: socket.socket) -> None:
        """A peer has sent all that it had; others may have sent the rest, or will."""
        whole = lease.arrivals.prefix()
        try:
            peer.settimeout(_SEND_WITHIN)
            sockets.send(peer, Welcome(whole))  # before the scheduler has the lease closed
        finally:
            if whole == lease.count:
                self._tell(lease.says("finished"))

    def _taken(self, lease: Written, frame: Blocks, blocks: list[int], peer: socket.socket) -> bool:
        """Whether the bytes that follow a frame are where they belong."""
        parts, put = self._memory.incoming(frame.layer, blocks)
        sockets.fill(peer, parts)
        with lease.lock:
            if lease.open:
                put()
            return lease.open

    def _arrived(self, lease: Written, frame: Blocks) -> None:
        with lease.lock:
            new = lease.arrivals.add(frame)
            lease.bytes += len(frame.places) * self._memory.block_bytes
            lease.ended = time.monotonic()
        if new and lease.ended - lease.told > lease.ttl / _RENEWALS:
            self._told(lease)

    def _told(self, lease: Written) -> None:
        lease.told = time.monotonic()
        self._tell(lease.says("moved"))


def _shut(peer: socket.socket) -> None:
    with contextlib.suppress(OSError):
        peer.shutdown(socket.SHUT_RDWR)
